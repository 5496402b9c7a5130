package eventqueue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
)

// finished is a run that has ended and waits for its end to be written.
type finished struct {
	*execution
	end      End
	state    machine.State // where the machine stands: Delete or Queue
	err      error
	duration time.Duration
}

// MaxLastErrorBytes is how much of an error event_log keeps.
const MaxLastErrorBytes = 8 << 10

// maxWait bounds the wait that a handler or its policy may ask for.
const maxWait = 10 * 366 * 24 * time.Hour

// finished judges a run: what is to be written about it. The texts and waits
// come from code of the handler's; a panic there is no worse than one in it.
func (x *execution) finished(verdict machine.Label, err error) *finished {
	if x.run.completed.Load() {
		verdict, err = machine.ExecutesToCompletion, nil
	}
	f := &finished{execution: x, err: err, duration: time.Since(x.began)}
	f.state, f.end.Label = machine.Judge(machine.Run{
		Verdict: verdict, Retries: x.run.Retries, MaxRetries: *x.policy.MaxRetries,
	})
	f.end.Claim, f.end.Unique, f.end.InLine = x.run.claim(), x.run.unique, x.run.inLine
	f.end.Delay = min(max(x.waitAfter(f.end.Label, err), 0), maxWait)
	f.end.Passes = x.policy.HoldLine != nil && f.end.Delay > *x.policy.HoldLine
	if err != nil {
		text, ok := textOf(err)
		if !ok {
			f.err = errors.New(text)
		}
		f.end.LastError = storable(text)
	}
	return f
}

// waitAfter is what a run that ended with a label and an error asks for: the wait
// before the next look at its event.
func (x *execution) waitAfter(label machine.Label, err error) time.Duration {
	switch label {
	case machine.RetryAllowed:
		return x.backoff()
	case machine.Snoozed:
		wait, _ := SnoozeOf(err)
		return wait
	case machine.OverLimit:
		var over *overLimitError
		if errors.As(err, &over) {
			return over.delay
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
		defer recovered(&panicked)
		wait = x.policy.Backoff(x.run.Retries + 1)
	}()
	if panicked != nil {
		return Policy{}.withDefaults().Backoff(x.run.Retries + 1)
	}
	return wait
}

// textOf is the text of an error, also of one whose Error method panics.
func textOf(err error) (text string, ok bool) {
	var panicked error
	func() {
		defer recovered(&panicked)
		text = err.Error()
	}()
	if panicked != nil {
		return "the handler returned an error that cannot be printed: " + panicked.Error(), false
	}
	return text, true
}

// storable makes any text fit a text column, and event_log.
func storable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > MaxLastErrorBytes {
		s = strings.ToValidUTF8(s[:MaxLastErrorBytes], "") // no half rune at the end
	}
	return s
}

// How many ends go into one statement, and how long a few wait for more while
// other handlers are about to end.
const (
	finishBatch  = 1000
	finishLinger = 50 * time.Millisecond
)

// maxFinishWait bounds the wait between two tries to write ends: a worker that
// stops when the database is back after a long outage still tries once more.
const maxFinishWait = lastWritesTake / 2

// finish writes the ends of runs until w.ends is closed and empty: whatever has come
// together goes into one statement. Ends whose rows somebody is writing wait
// beside it, so that they keep nobody else waiting.
func (w *Worker) finish(ctx context.Context) {
	var later sync.WaitGroup
	for batch := w.collect(); len(batch) > 0; batch = w.collect() {
		// By id: then it does not matter in which order runs that ended together
		// came, and statements that meet lock rows in one order.
		slices.SortFunc(batch, func(a, b *finished) int { return cmp.Compare(a.run.ID, b.run.ID) })
		size := len(batch)
		if slices.ContainsFunc(batch, (*finished).heldLine) {
			size = MaxTurns
		}
		for part := range slices.Chunk(batch, size) {
			if busy := w.writeEnds(ctx, part); len(busy) > 0 {
				later.Go(func() { w.writeLater(ctx, busy) })
			}
		}
	}
	later.Wait()
}

func (w *Worker) writeLater(ctx context.Context, busy []*finished) {
	wait := newFailureWait(w.config.Jitter)
	for len(busy) > 0 {
		if ctx.Err() != nil {
			w.unwritten(busy, errBusy)
			return
		}
		wait.pause(ctx)
		busy = w.writeEnds(ctx, busy)
	}
}

// errBusy is why an end could not be written before the worker had to stop.
var errBusy = errors.New("somebody else has locked the event's row")

// heldLine tells whether another event may be waiting for this end.
func (f *finished) heldLine() bool { return f.end.InLine }

// collect takes what is there, and waits a moment for more when more runs than
// that are under way: a statement for many costs little more than one for few. It
// returns none at the end.
func (w *Worker) collect() (batch []*finished) {
	for len(batch) == 0 {
		if batch = w.ends.takeNow(nil, finishBatch); len(batch) == 0 && !w.ends.wait(nil, nil) {
			return nil
		}
	}
	linger := time.NewTimer(finishLinger)
	defer linger.Stop()
	held := slices.ContainsFunc(batch, (*finished).heldLine)
	for len(batch) < finishBatch && !held {
		more := w.runs.unended() > 0 // before looking: an end is handed in before its run is off the count
		before := len(batch)
		batch = w.ends.takeNow(batch, finishBatch)
		if len(batch) == before && (!more || !w.ends.wait(linger.C, nil)) {
			break
		}
		held = slices.ContainsFunc(batch[before:], (*finished).heldLine)
	}
	return batch
}

// writeEnds writes a batch and tries again until the database answers or ctx
// ends. What the database refuses is halved until the one row that it refuses
// stands alone: no event spoils the end of another (I15). It returns the ends
// whose rows somebody is writing.
func (w *Worker) writeEnds(ctx context.Context, batch []*finished) (busy []*finished) {
	batch, lost := w.runs.current(batch)
	closed := make([]closing, len(lost))
	for i, f := range lost {
		closed[i] = lostTo(f)
	}
	w.close(closed)
	ends := make([]End, 0, len(batch))
	for _, f := range batch {
		// What has completed in a transaction of the handler's own gives its turn on here.
		if !f.run.completed.Load() || f.end.InLine {
			ends = append(ends, f.end)
		}
	}
	wait := newFailureWait(w.config.Jitter)
	var last error
	for {
		written, err := w.writeOnce(ctx, ends)
		switch {
		case err == nil:
			return w.settle(batch, written)
		case refused(err) && len(batch) > 1:
			half := len(batch) / 2
			return append(w.writeEnds(ctx, batch[:half]), w.writeEnds(ctx, batch[half:])...)
		case refused(err) || ctx.Err() != nil:
			w.unwritten(w.settleCompleted(batch), cmp.Or(last, err))
			return nil
		}
		last = err
		wait.next = min(wait.next, maxFinishWait)
		w.log.Warn("could not write how events ended", zap.Int(logCount, len(batch)),
			zap.Duration(logWait, wait.next), zap.Error(err))
		wait.pause(ctx)
	}
}

// settleCompleted settles those that a transaction of the handler's has completed:
// nothing but their turns, which the relay finds, is left to write. It returns the
// others.
func (w *Worker) settleCompleted(batch []*finished) (others []*finished) {
	var completed []*finished
	for _, f := range batch {
		if f.run.completed.Load() {
			completed = append(completed, f)
		} else {
			others = append(others, f)
		}
	}
	w.settle(completed, Written{})
	return others
}

func (w *Worker) writeOnce(ctx context.Context, ends []End) (Written, error) {
	if len(ends) == 0 {
		return Written{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.config.LockTimeout/2)
	defer cancel()
	return w.store.Finish(ctx, nil, ends, w.config.KeepHistory)
}

// refused tells whether the database has judged the statement or its data, so
// that the same statement would fail again. Other classes of SQLSTATE are
// troubles that pass: connections (08), read-only (25), conflicts (40), resources
// (53), locks (55), shutdowns and time-outs (57), the system (58).
func refused(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) < 2 {
		return false
	}
	switch pg.Code[:2] {
	case "08", "25", "40", "53", "55", "57", "58":
		return false
	default:
		return true
	}
}

// settle answers the notifications of ends that were written, and of those that
// the fence refused. It returns the others.
func (w *Worker) settle(batch []*finished, written Written) (busy []*finished) {
	all := len(written.Done) == len(batch) // as nearly always: no set is needed
	var done, lost map[EventID]bool
	if !all {
		done, lost = idSet(written.Done), idSet(written.Lost)
	}
	for i := range written.Turns {
		w.turns.put(written.Turns[i])
	}
	ended := make([]closing, 0, len(batch))
	for _, f := range batch {
		// A transaction of the handler's own that has committed took the row away.
		completed := f.run.completed.Load() || f.end.Label == machine.ExecutesToCompletion && f.run.completing.Load() && lost[f.run.ID]
		switch {
		case completed || all || done[f.run.ID]:
			to := f.state
			if to == machine.Delete {
				to = machine.Follow(machine.Delete, machine.Deleted).To
			}
			ended = append(ended, closing{f, f.end.Label, to, f.end.Delay})
		case lost[f.run.ID]:
			ended = append(ended, lostTo(f))
		default:
			busy = append(busy, f)
		}
	}
	w.close(ended)
	return busy
}

// closing is a run whose end has been dealt with: its last arrow, and the wait
// before the next look at its event.
type closing struct {
	*finished
	label machine.Label
	to    machine.State
	delay time.Duration
}

// lostTo closes a run whose end the fence refuses.
func lostTo(f *finished) closing {
	arrow := machine.Follow(writer(f), machine.LockLost)
	return closing{f, arrow.Label, arrow.To, 0}
}

// unwritten gives the notifications back when the ends could not be written.
// The locks expire, which counts as a failed attempt.
func (w *Worker) unwritten(batch []*finished, err error) {
	if len(batch) == 0 {
		return
	}
	w.log.Error("could not write how events ended; their locks will expire", zap.Int(logCount, len(batch)), zap.Error(err))
	closed := make([]closing, len(batch))
	for i, f := range batch {
		from := writer(f)
		if from == machine.Process { // which has no arrow of its own for this
			from = machine.Follow(machine.Process, machine.Exception).To
		}
		arrow := machine.Follow(from, machine.Exception)
		f.err = errors.Join(f.err, err)
		closed[i] = closing{f, arrow.Label, arrow.To, w.config.LockTimeout}
	}
	w.close(closed)
}

// writer is the state that writes an end.
func writer(f *finished) machine.State {
	switch {
	case f.state == machine.Delete:
		return machine.Delete
	case f.end.Label == machine.RetryAllowed:
		return machine.RetryCheck
	default:
		return machine.Process
	}
}

// close tells the ends of runs, answers their notifications and frees their slots.
// An event that was run without a notification, and is to be run again, has one
// published: its own may be gone.
func (w *Worker) close(ended []closing) {
	w.runs.remove(ended)
	ran, spare := 0, 0
	for i := range ended {
		c := &ended[i]
		out := Outcome{Event: c.run.ID, Canvas: c.run.Canvas, Handler: c.run.Handler(), Label: c.label, To: c.to,
			Attempt: c.run.Attempt, Delay: c.delay, Err: c.err, Duration: c.duration}
		w.tell(out)
		a := answerTo(c.delivery, out)
		if c.delivery.rung() || a.requeue {
			w.answers <- a
		}
		switch {
		case c.label == machine.OverLimit: // it did not run, which is no event for MaxEvents
			w.slotsOf(&c.delivery).give(1)
		case c.delivery.rung():
			ran++
		default:
			spare++
		}
	}
	w.slots.ended(ran)
	w.spare.ended(spare)
}
