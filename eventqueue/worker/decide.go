package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
)

// decider claims the events of a batch and does with each what the diagram says.
type decider struct {
	part
	reporter *reporter
	releaser *releaser
	rechecks *rechecks
	breakers *breakers
	claimer  *claimer
	suspects *suspects
	rates    *rateStage
	executor *executor
	advancer *advancer
	forwards *forwarder
	// sawClaimed is told of each event that was claimed; see urgency.
	sawClaimed func(claimed *ClaimResult)
	// stopsSince is when the worker began to stop: when it is called first.
	stopsSince func() time.Time
}

// claimOrWait is claim, and the wait after a failure.
func (dec *decider) claimOrWait(ctx, work context.Context, deliveries []delivery, wait *backoff.Wait) {
	deliveries, doubles := split(deliveries)
	// A double may be the same message once more, so it is requeued and not acknowledged: either
	// the event is gone by then, or it is tried again.
	dec.releaser.giveBack(doubles, dec.config.Lease)
	err := dec.claim(ctx, work, deliveries)
	if err == nil {
		wait.Reset()
		return
	}
	dec.log.Warn("could not claim events", zap.Int(logkey.Count, len(deliveries)), zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
	dec.releaser.giveBack(deliveries, wait.Next)
	wait.Pause(ctx)
}

// split separates the second and further notifications of one event from a batch: the first one
// stands for them all.
func split(deliveries []delivery) (first, doubles []delivery) {
	seen := make(map[eventqueue.EventID]struct{}, len(deliveries))
	first = deliveries[:0]
	for _, d := range deliveries {
		if _, double := seen[d.Event]; double {
			doubles = append(doubles, d)
			continue
		}
		seen[d.Event] = struct{}{}
		first = append(first, d)
	}
	return first, doubles
}

// claim claims the events of a batch of notifications, all at once, and does with each what the
// diagram says.
func (dec *decider) claim(ctx, work context.Context, deliveries []delivery) error {
	ids := make([]eventqueue.EventID, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.Event
	}
	claimCtx, cancel := dec.claimContext(ctx)
	defer cancel()
	asked := time.Now()
	answers, err := dec.claimer.ask(claimCtx, ids)
	if err != nil {
		return err
	}
	byID := make(map[eventqueue.EventID]*ClaimResult, len(answers.results))
	for i := range answers.results {
		byID[answers.results[i].Event.ID] = &answers.results[i]
	}
	// Claimed events begin before anything else is done: only a run that has begun keeps its lock
	// (I3).
	var rest, limited, suspected []candidate
	var unasked []delivery
	for _, d := range deliveries {
		if _, waits := answers.waits[d.Event]; waits {
			unasked = append(unasked, d)
			continue
		}
		l := candidate{d, byID[d.Event]}
		if l.result == nil {
			l.result = &ClaimResult{Event: eventqueue.Event{ID: d.Event, Canvas: d.Canvas}}
		}
		if l.result.Facts.Claimed {
			dec.sawClaimed(l.result)
		}
		switch {
		case !l.result.Facts.Claimed:
			if !l.result.Facts.HandlerKnown {
				l.result.Facts.BreakerOpen = dec.breakers.waits(&l.result.Event)
			}
			rest = append(rest, l)
		case dec.rates.asksLimit(l.result):
			limited = append(limited, l)
		case dec.executor.isSuspect(l.result):
			suspected = append(suspected, l)
		default:
			dec.decide(work, l, asked)
		}
	}
	// Limits are asked before anything is recorded: an event that is put off has not begun, even
	// if the worker dies before that is written (I18).
	suspected = append(suspected, dec.rates.beginLimited(claimCtx, work, limited, asked)...)
	dec.suspects.add(work, suspected, asked)
	rest = dec.advancer.advance(claimCtx, work, rest)
	for _, l := range rest {
		dec.decide(work, l, asked)
	}
	dec.forwards.forward(claimCtx, rest)
	for _, d := range unasked {
		dec.requeueUnasked(d, answers)
	}
	return nil
}

// requeueUnasked is for a delivery whose event could not be asked about.
func (dec *decider) requeueUnasked(d delivery, a *askedBatch) {
	out := Outcome{Event: d.Event, Canvas: d.Canvas, Label: machine.LockClaimFailed, Delay: a.waits[d.Event]}
	out.To = machine.Follow(machine.LockClaim, out.Label).To
	dec.reporter.report(out)
	dec.releaser.letGo(d, answer{delivery: d, requeue: !a.dropped[d.Event], after: out.Delay})
}

// claimContext is for a claim: a stop must not cancel it at once, since it may have committed, but
// it must not keep the worker from stopping either.
func (dec *decider) claimContext(ctx context.Context) (context.Context, context.CancelFunc) {
	claim, cancel := context.WithTimeout(context.WithoutCancel(ctx), dec.config.LockTimeout/2)
	unhook := context.AfterFunc(ctx, func() {
		backoff.Sleep(claim, time.Until(dec.stopsSince().Add(claimAtStop))) // one batch may need several claims
		cancel()
	})
	return claim, func() { unhook(); cancel() }
}

// decide follows the facts to Process, Queue or End.
func (dec *decider) decide(work context.Context, l candidate, asked time.Time) {
	d, f := l.delivery, l.result
	state, label := machine.DecideClaim(f.Facts)
	if state == machine.Process {
		dec.executor.start(work, l, asked)
		return
	}
	out := Outcome{Event: d.Event, Canvas: f.Event.Canvas, Handler: f.Event.Handler(), Label: label, To: state}
	if state == machine.Queue {
		out.Delay = dec.rechecks.recheck(label, f.Event.ID, &f.Facts)
	}
	dec.reporter.report(out)
	answer := answerTo(d, out)
	if after := dec.rechecks.recheck(machine.IsLocked, f.Event.ID, &f.Facts); mayBlockGroup(f, label) && after <= eventqueue.MaxRequeue && (!answer.requeue || after < answer.after) {
		answer.requeue, answer.after = true, after
	}
	dec.releaser.letGo(d, answer)
}

// mayBlockGroup reports whether an event that cannot run occupies a place in its ordering groups
// for a holder that may be dead. It is tried when its lock expires, so that its place is taken back
// then: what keeps this event from running must not hold up the others of the same limit.
func mayBlockGroup(f *ClaimResult, label machine.Label) bool {
	return f.Grouped && f.Facts.Lock == machine.LockHeld && keepsFromRunning(label)
}
