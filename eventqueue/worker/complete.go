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
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
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
}

// complete writes completions until w.completions is closed and empty: all that have arrived go
// into one statement. Completions whose rows another transaction is writing are tried again
// separately, so that they do not delay others.
func (w *completer) complete(ctx context.Context) {
	var later sync.WaitGroup
	for batch := w.collect(); len(batch) > 0; batch = w.collect() {
		// By id: then the order in which runs were submitted does not matter, and concurrent
		// statements lock rows in the same order.
		slices.SortFunc(batch, func(a, b *completedRun) int { return cmp.Compare(a.run.ID, b.run.ID) })
		size := len(batch)
		if slices.ContainsFunc(batch, (*completedRun).advancesGroup) {
			size = MaxGrouped
		}
		for part := range slices.Chunk(batch, size) {
			if busy := w.writeCompletions(ctx, part); len(busy) > 0 {
				later.Go(func() { w.writeLater(ctx, busy) })
			}
		}
	}
	later.Wait()
}

func (w *completer) writeLater(ctx context.Context, busy []*completedRun) {
	wait := backoff.New(w.config.Jitter)
	for len(busy) > 0 {
		if ctx.Err() != nil {
			w.unwritten(busy, errBusy)
			return
		}
		wait.Pause(ctx)
		busy = w.writeCompletions(ctx, busy)
	}
}

// errBusy is why a completion could not be written before the worker had to stop.
var errBusy = errors.New("somebody else has locked the event's row")

// collect takes the runs that were submitted, and waits a moment for more while other runs are
// under way: a statement for many costs little more than one for few. When the batcher is closed
// and empty it returns none.
func (w *completer) collect() (batch []*completedRun) {
	for len(batch) == 0 {
		if batch = w.completions.takeNow(nil, completeBatch); len(batch) == 0 && !w.completions.wait(nil, nil) {
			return nil
		}
	}
	linger := time.NewTimer(completeLinger)
	defer linger.Stop()
	held := slices.ContainsFunc(batch, (*completedRun).advancesGroup)
	for len(batch) < completeBatch && !held {
		more := w.runs.unended() > 0 // read first: a run is submitted before it is off the count
		before := len(batch)
		batch = w.completions.takeNow(batch, completeBatch)
		if len(batch) == before && (!more || !w.completions.wait(linger.C, nil)) {
			break
		}
		held = slices.ContainsFunc(batch[before:], (*completedRun).advancesGroup)
	}
	return batch
}

// writeCompletions writes a batch and tries again until the database answers or ctx ends. A batch
// that the database refuses is halved until the refused row is alone, so that it does not fail the
// completions of other events (I15). It returns the runs whose rows another transaction is writing.
func (w *completer) writeCompletions(ctx context.Context, batch []*completedRun) (busy []*completedRun) {
	batch, lost := w.runs.current(batch)
	resolved := make([]resolvedRun, len(lost))
	for i, f := range lost {
		resolved[i] = refusedRun(f)
	}
	w.acknowledge(resolved)
	completions := make([]Completion, 0, len(batch))
	for _, f := range batch {
		// The ordering groups of a run that was completed in a transaction of the handler's own
		// advance here.
		if !f.completed.Load() || f.completion.Grouped {
			completions = append(completions, f.completion)
		}
	}
	wait := backoff.New(w.config.Jitter)
	var last error
	for {
		written, err := w.writeOnce(ctx, completions)
		switch {
		case err == nil:
			return w.applyResult(batch, written)
		case sqlstate.Refused(err) && len(batch) > 1:
			half := len(batch) / 2
			return append(w.writeCompletions(ctx, batch[:half]), w.writeCompletions(ctx, batch[half:])...)
		case sqlstate.Refused(err) || ctx.Err() != nil:
			w.unwritten(w.applyCompleted(batch), cmp.Or(last, err))
			return nil
		}
		last = err
		wait.Next = min(wait.Next, maxCompleteWait)
		w.log.Warn("could not write how events ended", zap.Int(logkey.Count, len(batch)),
			zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
		wait.Pause(ctx)
	}
}

// applyCompleted acknowledges the runs that a transaction of the handler's own has completed: only
// their ordering groups are left to advance, and the relay finds those. It returns the others.
func (w *completer) applyCompleted(batch []*completedRun) (others []*completedRun) {
	var completed []*completedRun
	for _, f := range batch {
		if f.completed.Load() {
			completed = append(completed, f)
		} else {
			others = append(others, f)
		}
	}
	w.applyResult(completed, WriteResult{})
	return others
}

func (w *completer) writeOnce(ctx context.Context, completions []Completion) (WriteResult, error) {
	if len(completions) == 0 {
		return WriteResult{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.config.LockTimeout/2)
	defer cancel()
	return w.store.Complete(ctx, nil, completions, w.config.RetainHistory)
}

// applyResult acknowledges the runs whose completions were written, and those that the fence
// refused. It returns the others.
func (w *completer) applyResult(batch []*completedRun, written WriteResult) (busy []*completedRun) {
	all := len(written.Done) == len(batch) // as nearly always: no set is needed
	var done, lost map[eventqueue.EventID]bool
	if !all {
		done, lost = idSet(written.Done), idSet(written.Lost)
	}
	for i := range written.Advanced {
		w.advanced.put(written.Advanced[i])
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
		default:
			busy = append(busy, f)
		}
	}
	w.acknowledge(outcomes)
	return busy
}

// unwritten requeues the notifications when the completions could not be written. The locks expire,
// which counts as a failed attempt.
func (w *completer) unwritten(batch []*completedRun, err error) {
	if len(batch) == 0 {
		return
	}
	w.log.Error("could not write how events ended; their locks will expire", zap.Int(logkey.Count, len(batch)), zap.Error(err))
	resolved := make([]resolvedRun, len(batch))
	for i, f := range batch {
		from := writingState(f)
		if from == machine.Process { // which has no arrow for this
			from = machine.Follow(machine.Process, machine.Exception).To
		}
		arrow := machine.Follow(from, machine.Exception)
		f.err = errors.Join(f.err, err)
		resolved[i] = resolvedRun{f, arrow.Label, arrow.To, w.config.LockTimeout}
	}
	w.acknowledge(resolved)
}

// acknowledge reports outcomes, acknowledges or requeues the notifications, and frees the slots. An
// event that was run without a notification, and is to be run again, has one published: its own may
// be gone.
func (w *completer) acknowledge(outcomes []resolvedRun) {
	w.runs.remove(outcomes)
	ran, reserved := 0, 0
	for i := range outcomes {
		c := &outcomes[i]
		out := Outcome{Event: c.run.ID, Canvas: c.run.Canvas, Handler: c.run.Handler(), Label: c.label, To: c.to,
			Attempt: c.run.Attempt, ClaimID: c.run.ClaimID, Delay: c.delay, Err: c.err, Duration: c.duration}
		w.reporter.report(out)
		a := answerTo(c.delivery, out)
		if c.delivery.notified() || a.requeue {
			w.releaser.answers.put(a)
		}
		switch {
		case c.label == machine.OverLimit: // it did not run, so it does not count for MaxEvents
			w.releaser.slotsOf(&c.delivery).give(1)
		case c.delivery.notified():
			ran++
		default:
			reserved++
		}
	}
	w.releaser.slots.completed(ran)
	w.releaser.reserved.completed(reserved)
}
