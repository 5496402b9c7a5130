package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/minutes"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
	"eventsv2/internal/rounds"
	"eventsv2/internal/sqlstate"
)

// How many completions go into one statement, and how long a few wait for more while other handlers
// are about to return.
const (
	completeBatch  = 1000
	completeLinger = 50 * time.Millisecond
)

// maxCompleteWait bounds the wait between two tries to write completions: a worker that stops when
// the database is back after a long outage still tries once more.
const maxCompleteWait = lastWritesTake / 2

// completer writes the completions of runs.
type completer struct {
	part
	reporter    *reporter
	releaser    *releaser
	runs        *runs
	completions *batcher[*completedRun]
	advanced    *batcher[eventqueue.Event]
	minutes     *minutes.Counter
	hook        *errorHook
	large       chan struct{} // has an element while the completion of an event with a large value is written
}

// complete writes completions until c.completions is closed and empty: all that have arrived go
// into one statement. Completions whose rows another transaction is writing are tried again
// separately, so that they do not delay others.
func (c *completer) complete(ctx context.Context) {
	var later sync.WaitGroup
	loop := c.rounds.Loop("loop that writes completions")
	defer loop.Ends()
	next := func() []*completedRun {
		loop.Waits() // for runs to end
		return c.collect()
	}
	for batch := next(); len(batch) > 0; batch = next() {
		// By id: then the order in which runs were submitted does not matter, and concurrent
		// statements lock rows in the same order.
		slices.SortFunc(batch, func(a, b *completedRun) int { return cmp.Compare(a.run.ID, b.run.ID) })
		batch, large := apart(batch)
		if len(large) > 0 {
			later.Go(func() { c.writeLarge(ctx, large) })
		}
		if len(batch) == 0 {
			continue
		}
		size := len(batch)
		if slices.ContainsFunc(batch, (*completedRun).advancesGroup) {
			size = MaxGrouped
		}
		for part := range slices.Chunk(batch, size) {
			if busy := c.writeCompletions(ctx, part, loop); len(busy) > 0 {
				later.Go(func() { c.writeLater(ctx, busy) })
			}
		}
	}
	later.Wait()
}

// apart separates the completions of events with large values, in their order.
func apart(batch []*completedRun) (small, large []*completedRun) {
	if !slices.ContainsFunc(batch, (*completedRun).isLarge) { // as nearly always
		return batch, nil
	}
	for _, f := range batch {
		if f.isLarge() {
			large = append(large, f)
		} else {
			small = append(small, f)
		}
	}
	return small, large
}

// isLarge reports whether writing the completion may take long, because the value, or a long result, goes to event_log.
func (f *completedRun) isLarge() bool {
	return f.valueApart || len(f.completion.Result) > MaxLastErrorBytes
}

// writeLarge writes the completions of events with large values, one at a time: together they could
// take longer than a statement may. The completions of other events do not wait for them (I15).
func (c *completer) writeLarge(ctx context.Context, large []*completedRun) {
	loop := c.rounds.Loop("loop that writes completions of large events")
	defer loop.Ends()
	for _, f := range large {
		loop.Waits() // for its turn
		c.large <- struct{}{}
		busy := c.writeCompletions(ctx, []*completedRun{f}, loop)
		<-c.large
		loop.Waits() // for the other transaction
		c.writeLater(ctx, busy)
	}
}

func (c *completer) writeLater(ctx context.Context, busy []*completedRun) {
	if len(busy) == 0 {
		return
	}
	loop := c.rounds.Loop("loop that writes completions once more")
	defer loop.Ends()
	wait := backoff.New(c.config.Jitter)
	for len(busy) > 0 {
		if ctx.Err() != nil {
			c.unwritten(busy, errBusy)
			return
		}
		loop.Waits() // for the other transaction
		wait.Pause(ctx)
		busy = c.writeCompletions(ctx, busy, loop)
	}
}

// errBusy is why a completion could not be written before the worker had to stop.
var errBusy = errors.New("another transaction has locked the event's row")

// collect takes the runs that were submitted, and waits a moment for more while other runs are
// under way: a statement for many costs little more than one for few. When the batcher is closed
// and empty it returns none.
func (c *completer) collect() (batch []*completedRun) {
	for len(batch) == 0 {
		if batch = c.completions.takeNow(nil, completeBatch); len(batch) == 0 && !c.completions.wait(nil, nil) {
			return nil
		}
	}
	linger := time.NewTimer(completeLinger)
	defer linger.Stop()
	held := slices.ContainsFunc(batch, (*completedRun).advancesGroup)
	for len(batch) < completeBatch && !held {
		more := c.runs.unended() > 0 // read first: a run is submitted before it is off the count
		before := len(batch)
		batch = c.completions.takeNow(batch, completeBatch)
		if len(batch) == before && (!more || !c.completions.wait(linger.C, nil)) {
			break
		}
		held = slices.ContainsFunc(batch[before:], (*completedRun).advancesGroup)
	}
	return batch
}

// writeCompletions writes a batch and tries again until the database answers or ctx ends. A batch
// that the database refuses is halved until the refused row is alone, so that it does not fail the
// completions of other events (I15). It returns the runs whose rows another transaction is writing.
// Each try is a step of the loop.
func (c *completer) writeCompletions(ctx context.Context, batch []*completedRun, loop *rounds.Loop) (busy []*completedRun) {
	loop.Within(c.config.LockTimeout/2 + 2*maxCompleteWait) // what is found out about a run is logged, too, and a log may take no line
	batch, lost := c.runs.current(batch)
	resolved := make([]resolvedRun, len(lost))
	for i, f := range lost {
		resolved[i] = refusedRun(f)
	}
	c.acknowledge(resolved)
	completions := make([]Completion, 0, len(batch))
	for _, f := range batch {
		// The ordering groups of a run that was completed in a transaction of the handler's own
		// advance here.
		if !f.completed.Load() || f.completion.Grouped {
			completions = append(completions, f.completion)
		}
	}
	wait := backoff.New(c.config.Jitter)
	var last error
	for {
		loop.Within(c.config.LockTimeout/2 + 2*maxCompleteWait)
		written, err := c.writeOnce(ctx, completions)
		switch {
		case err == nil:
			busy, cancelled := c.applyResult(batch, written)
			if len(cancelled) > 0 {
				busy = append(busy, c.writeCompletions(ctx, cancelled, loop)...)
			}
			return busy
		case sqlstate.Refused(err) && len(batch) > 1:
			half := len(batch) / 2
			return append(c.writeCompletions(ctx, batch[:half], loop), c.writeCompletions(ctx, batch[half:], loop)...)
		case sqlstate.Refused(err) && len(batch) == 1 && batch[0].completion.Records():
			// The next try of the event is worth more than what there is to read about this one.
			c.log.Error("the database refuses how this run ended; it is written once more without the record of the failed attempt",
				zap.Stringer(logkey.Event, batch[0].run.ID), zap.Error(err))
			batch[0].completion.Unrecorded = true
			return c.writeCompletions(ctx, batch, loop)
		case sqlstate.Refused(err) || ctx.Err() != nil:
			c.unwritten(c.applyCompleted(batch), cmp.Or(last, err))
			return nil
		}
		last = err
		wait.Next = min(wait.Next, maxCompleteWait)
		c.log.Warn("could not write how events ended", zap.Int(logkey.Count, len(batch)),
			zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
		wait.Pause(ctx)
	}
}

// applyCompleted acknowledges the runs that a transaction of the handler's own has completed: only
// their ordering groups are left to advance, and the relay finds those. It returns the others.
func (c *completer) applyCompleted(batch []*completedRun) (others []*completedRun) {
	var completed []*completedRun
	for _, f := range batch {
		if f.completed.Load() {
			completed = append(completed, f)
		} else {
			others = append(others, f)
		}
	}
	c.applyResult(completed, WriteResult{})
	return others
}

func (c *completer) writeOnce(ctx context.Context, completions []Completion) (WriteResult, error) {
	if len(completions) == 0 {
		return WriteResult{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.LockTimeout/2)
	defer cancel()
	written, err := c.store.Complete(ctx, nil, completions, c.config.RetainHistory)
	return written, refusal.Report(c.log, err)
}

// applyResult acknowledges the runs whose completions were written, and those that the fence
// refused. It returns the others, apart from them those that are to be written as cancelled.
func (c *completer) applyResult(batch []*completedRun, written WriteResult) (busy, cancelled []*completedRun) {
	all := len(written.Done) == len(batch) // as nearly always: no set is needed
	var done, lost, wanted map[eventqueue.EventID]bool
	if !all {
		done, lost, wanted = idSet(written.Done), idSet(written.Lost), idSet(written.Cancelled)
	}
	if len(written.Advanced) > 0 {
		c.advanced.put(written.Advanced...)
	}
	outcomes := make([]resolvedRun, 0, len(batch))
	for _, f := range batch {
		// The handler's own transaction has committed and deleted the row.
		completed := f.completed.Load() || f.completion.Label == machine.ExecutesToCompletion && f.completing.Load() && lost[f.run.ID]
		switch {
		case completed || all || done[f.run.ID]:
			to := f.state
			if to == machine.Delete {
				to = machine.Follow(machine.Delete, machine.Deleted).To
			}
			outcomes = append(outcomes, resolvedRun{f, f.completion.Label, to, f.completion.Delay})
		case lost[f.run.ID]:
			outcomes = append(outcomes, refusedRun(f))
		case wanted[f.run.ID]:
			f.cancel()
			cancelled = append(cancelled, f)
		default:
			busy = append(busy, f)
		}
	}
	c.acknowledge(outcomes)
	return busy, cancelled
}

// unwritten requeues the notifications when the completions could not be written. The locks expire,
// which counts as a failed attempt.
func (c *completer) unwritten(batch []*completedRun, err error) {
	if len(batch) == 0 {
		return
	}
	c.log.Error("could not write how events ended; their locks will expire", zap.Int(logkey.Count, len(batch)), zap.Error(err))
	resolved := make([]resolvedRun, len(batch))
	for i, f := range batch {
		from := writingState(f)
		if from == machine.Process { // which has no arrow for this
			from = machine.Follow(machine.Process, machine.Exception).To
		}
		arrow := machine.Follow(from, machine.Exception)
		f.err = errors.Join(f.err, err)
		resolved[i] = resolvedRun{f, arrow.Label, arrow.To, c.config.LockTimeout}
	}
	c.acknowledge(resolved)
}

// acknowledge reports outcomes, acknowledges or requeues the notifications, and frees the slots. An
// event that was run without a notification, and is to be run again, has one published: its own may
// be gone.
func (c *completer) acknowledge(outcomes []resolvedRun) {
	c.runs.remove(outcomes)
	counts := make(runCounts, 0, len(outcomes))
	var cancelled []eventqueue.Scope
	slots, reserved := vacated{}, vacated{}
	for i := range outcomes {
		r := &outcomes[i]
		out := Outcome{Event: r.run.ID, Canvas: r.run.Canvas, Handler: r.run.Handler(), Label: r.label, To: r.to,
			Attempt: r.run.Attempt, ClaimID: r.run.ClaimID, Delay: r.delay, Err: r.err, Duration: r.duration, Traceparent: r.delivery.Traceparent}
		c.reporter.report(out)
		if failed, has := r.failure(); has {
			c.hook.start(r.ctx.parent, failed)
		}
		if r.company > 0 {
			r.executor.ended(r.execution)
		}
		counts.add(&r.run.Event, r.label, r.waited, r.duration)
		if r.label == machine.Cancelled {
			cancelled = append(cancelled, eventqueue.Scope{Canvas: r.run.Canvas, Module: r.run.Module, Name: r.run.Name})
		}
		a := answerTo(r.delivery, out)
		if r.delivery.notified() || a.requeue {
			c.releaser.answers.put(a)
		}
		of := &reserved
		if r.delivery.notified() {
			of = &slots
		}
		switch {
		case r.givenUp: // its slot is free already
		case r.label == machine.OverLimit, r.label == machine.Released && errors.As(r.err, new(*awayError)): // it did not run, so it does not count for MaxEvents
			of.unused++
		default:
			of.ran++
		}
	}
	c.minutes.CountRuns(counts)
	c.minutes.CountCancelled(slices.Values(cancelled))
	c.releaser.vacate(slots, reserved)
}
