package worker

import (
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/invoke"
)

// completedRun is a run that is over and waits for its completion to be written.
type completedRun struct {
	*execution
	completion Completion
	state      machine.State // where the machine stands: Delete or Queue
	err        error
	duration   time.Duration
}

// decideRun decides what is to be written about a run. The texts and waits come from the handler's
// code; a panic there is treated like one in the handler.
func (x *execution) decideRun(verdict machine.Label, err error) *completedRun {
	if x.completed.Load() {
		verdict, err = machine.ExecutesToCompletion, nil
	}
	if verdict == machine.Snoozed && x.run.Snoozes >= *x.policy.MaxSnoozes {
		verdict = machine.Exception
		err = fmt.Errorf("the event has been snoozed %d times in a row, as often as its handler's policy allows, so this one is a failed attempt: %w",
			x.run.Snoozes, err)
	}
	company := 0
	if verdict == machine.Exception && isLost(err) {
		if company = x.companyAfterLoss(); company == 0 {
			company, err = 1, fmt.Errorf("it died alone: %w", err) // it stays the only suspect, and uses an attempt
		} else {
			verdict, err = machine.Released, laterError{err}
		}
	}
	f := &completedRun{execution: x, err: err, duration: time.Since(x.began)}
	f.state, f.completion.Label = machine.DecideRun(machine.Run{
		Verdict: verdict, Retries: x.run.Retries, MaxRetries: *x.policy.MaxRetries,
	})
	f.completion.Duration = f.duration
	f.completion.Claim, f.completion.Unique, f.completion.Grouped = x.claim(), x.unique, x.grouped
	f.completion.Result, f.completion.RunLog = x.resultSet(), x.ctx.log.End()
	f.completion.Delay = min(max(x.waitAfter(f.completion.Label, err), 0), eventqueue.MaxWait)
	if f.completion.Label == machine.Released || f.completion.Label == machine.RetryAllowed {
		f.completion.Company = company
	}
	f.completion.Passes = x.policy.OrderHold != nil && f.completion.Delay > *x.policy.OrderHold
	if err != nil {
		text, ok := textOf(err)
		if !ok {
			f.err = errors.New(text)
		}
		f.completion.LastError = storable(text)
		var panicked *eventqueue.PanicError
		if errors.As(err, &panicked) {
			f.completion.Stack = storable(string(panicked.Stack))
		}
	}
	return f
}

// cancel decides anew about a run after which the event would have stayed in the queue: an operator cancelled it before the worker heard of
// that.
func (f *completedRun) cancel() {
	f.state, f.completion.Label = machine.DecideRun(machine.Run{Verdict: machine.Cancelled})
	f.completion.Delay, f.completion.Company, f.completion.Passes = 0, 0, false
}

// lost is implemented by errors of handlers whose work is done by another process, which had the run in hand when it died:
// httptarget has one.
type lost interface{ Lost() bool }

func isLost(err error) bool {
	var l lost
	return errors.As(err, &l) && l.Lost()
}

// companyAfterLoss is with how many suspects an event may run next whose run was lost with a process other than this one; 0:
// it was alone, so that the loss is a failed attempt (I15).
func (x *execution) companyAfterLoss() int {
	switch together := int(x.together.Load()); together {
	case 0:
		return AnyCompany
	case 1:
		return 0
	default:
		return together / 2
	}
}

// waitAfter returns the wait before the next try of the event, for a run that ended with this label
// and error.
func (x *execution) waitAfter(label machine.Label, err error) time.Duration {
	switch label {
	case machine.RetryAllowed:
		return x.backoff()
	case machine.Snoozed:
		wait, _ := eventqueue.SnoozeOf(err)
		return x.policy.SnoozeFor(wait, x.run.Snoozes)
	case machine.OverLimit:
		var over *overLimitError
		if errors.As(err, &over) {
			return over.delay
		}
	case machine.Released:
		var away *awayError
		if errors.As(err, &away) {
			return away.wait
		}
		if errors.As(err, new(laterError)) {
			return claimFailedDelay + x.executor.config.Jitter(claimFailedDelay)
		}
	default:
	}
	return 0
}

// backoff asks the policy, or the default one when that panics.
func (x *execution) backoff() time.Duration {
	var wait time.Duration
	var panicked error
	func() {
		defer invoke.Recovered(&panicked)
		wait = x.policy.Backoff(x.run.Retries + 1)
	}()
	if panicked != nil {
		return eventqueue.Policy{}.WithDefaults().Backoff(x.run.Retries + 1)
	}
	return wait
}

// advancesGroup reports whether another event may be waiting for this completion.
func (f *completedRun) advancesGroup() bool { return f.completion.Grouped }

// resolvedRun is a run whose completion was written, refused or abandoned: its last arrow, and the
// wait before the next try of its event.
type resolvedRun struct {
	*completedRun
	label machine.Label
	to    machine.State
	delay time.Duration
}

// failure is what OnError is told of a run when its end is written: that it has failed, or that the one before it was lost,
// if it was put off or cancelled and did not begin. The next claim does not know of that any more.
func (r *resolvedRun) failure() (failed FailedRun, has bool) {
	switch r.label {
	case machine.OverLimit, machine.Cancelled:
		if has = r.lostRun && !r.calls.Load(); has {
			failed = r.lostBefore()
			failed.Last, failed.RetryIn = r.label == machine.Cancelled, r.delay
		}
		return failed, has
	case machine.RetryAllowed, machine.RetryTooMany, machine.FailedForGood:
		return FailedRun{Event: r.run.Event, Attempt: r.run.Attempt, Last: r.label != machine.RetryAllowed, RetryIn: r.delay, Err: r.err, Duration: r.duration}, true
	default:
		return failed, false
	}
}

// refusedRun resolves a run whose completion the fence refused.
func refusedRun(f *completedRun) resolvedRun {
	arrow := machine.Follow(writingState(f), machine.LockLost)
	return resolvedRun{f, arrow.Label, arrow.To, 0}
}

// writingState is the state of the diagram that writes the completion.
func writingState(f *completedRun) machine.State {
	switch {
	case f.state == machine.Delete:
		return machine.Delete
	case f.completion.Label == machine.RetryAllowed:
		return machine.RetryCheck
	default:
		return machine.Process
	}
}
