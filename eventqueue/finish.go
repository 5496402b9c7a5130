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
func (x *execution) finished(verdict machine.Label, err error) finished {
	if x.run.completed.Load() {
		verdict, err = machine.ExecutesToCompletion, nil
	}
	f := finished{execution: x, err: err, duration: time.Since(x.began)}
	f.state, f.end.Label = machine.Judge(machine.Run{
		Verdict: verdict, Retries: x.run.Retries, MaxRetries: *x.policy.MaxRetries,
	})
	f.end.Claim = x.run.claim()
	var snooze *snoozeError
	switch {
	case f.end.Label == machine.RetryAllowed:
		f.end.Delay = x.backoff()
	case f.end.Label == machine.Snoozed && errors.As(err, &snooze):
		f.end.Delay = snooze.delay
	}
	f.end.Delay = min(max(f.end.Delay, 0), maxWait)
	if err != nil {
		text, ok := textOf(err)
		if !ok {
			f.err = errors.New(text)
		}
		f.end.LastError = storable(text)
	}
	return f
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

// finish writes the ends of runs until w.ends is closed: whatever has come
// together goes into one statement. Ends whose rows somebody is writing wait
// beside it, so that they keep nobody else waiting.
func (w *Worker) finish(ctx context.Context) {
	var later sync.WaitGroup
	for first := range w.ends {
		batch := w.collect(first)
		// By id: then it does not matter in which order runs that ended together
		// came, and statements that meet lock rows in one order.
		slices.SortFunc(batch, func(a, b finished) int { return cmp.Compare(a.run.ID, b.run.ID) })
		busy := w.writeEnds(ctx, batch)
		if len(busy) > 0 {
			later.Go(func() { w.writeLater(ctx, busy) })
		}
	}
	later.Wait()
}

func (w *Worker) writeLater(ctx context.Context, busy []finished) {
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

// collect takes what is there, and waits a moment for more when more runs than
// that are under way: a statement for many costs little more than one for few.
func (w *Worker) collect(first finished) []finished {
	batch := append(make([]finished, 0, len(w.ends)+1), first)
	linger := time.NewTimer(finishLinger)
	defer linger.Stop()
	for len(batch) < finishBatch {
		more := w.runs.count() > 0 // before looking: an end is handed in before its run is off the count
		select {
		case f, ok := <-w.ends:
			if !ok {
				return batch
			}
			batch = append(batch, f)
			continue
		default:
		}
		if !more {
			return batch
		}
		select {
		case f, ok := <-w.ends:
			if !ok {
				return batch
			}
			batch = append(batch, f)
		case <-linger.C:
			return batch
		}
	}
	return batch
}

// writeEnds writes a batch and tries again until the database answers or ctx
// ends. What the database refuses is halved until the one row that it refuses
// stands alone: no event spoils the end of another (I15). It returns the ends
// whose rows somebody is writing.
func (w *Worker) writeEnds(ctx context.Context, batch []finished) (busy []finished) {
	batch, lost := w.runs.current(batch)
	for _, f := range lost {
		w.closeLost(f)
	}
	ends := make([]End, 0, len(batch))
	for _, f := range batch {
		if !f.run.completed.Load() {
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
			w.unwritten(batch, cmp.Or(last, err))
			return nil
		}
		last = err
		wait.next = min(wait.next, maxFinishWait)
		w.log.Warn("could not write how events ended", zap.Int(logCount, len(batch)),
			zap.Duration(logWait, wait.next), zap.Error(err))
		wait.pause(ctx)
	}
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
func (w *Worker) settle(batch []finished, written Written) (busy []finished) {
	done, lost := idSet(written.Done), idSet(written.Lost)
	for _, f := range batch {
		// A transaction of the handler's own that has committed took the row away.
		ended := f.run.completed.Load() || f.end.Label == machine.ExecutesToCompletion && f.run.completing.Load() && lost[f.run.ID]
		switch {
		case ended || done[f.run.ID]:
			to := f.state
			if to == machine.Delete {
				to = machine.Follow(machine.Delete, machine.Deleted).To
			}
			w.close(f, f.end.Label, to, f.end.Delay)
		case lost[f.run.ID]:
			w.closeLost(f)
		default:
			busy = append(busy, f)
		}
	}
	return busy
}

// closeLost closes a run whose end the fence refuses.
func (w *Worker) closeLost(f finished) {
	arrow := machine.Follow(writer(f), machine.LockLost)
	w.close(f, arrow.Label, arrow.To, 0)
}

// unwritten gives the notifications back when the ends could not be written.
// The locks expire, which counts as a failed attempt.
func (w *Worker) unwritten(batch []finished, err error) {
	w.log.Error("could not write how events ended; their locks will expire", zap.Int(logCount, len(batch)), zap.Error(err))
	for _, f := range batch {
		from := writer(f)
		if from == machine.Process { // which has no arrow of its own for this
			from = machine.Follow(machine.Process, machine.Exception).To
		}
		arrow := machine.Follow(from, machine.Exception)
		f.err = errors.Join(f.err, err)
		w.close(f, arrow.Label, arrow.To, w.config.LockTimeout)
	}
}

// writer is the state that writes an end.
func writer(f finished) machine.State {
	switch {
	case f.state == machine.Delete:
		return machine.Delete
	case f.end.Label == machine.RetryAllowed:
		return machine.RetryCheck
	default:
		return machine.Process
	}
}

func (w *Worker) close(f finished, label machine.Label, to machine.State, delay time.Duration) {
	out := Outcome{Event: f.run.ID, Canvas: f.run.Canvas, Handler: f.run.Handler(), Label: label, To: to,
		Attempt: f.run.Attempt, Delay: delay, Err: f.err, Duration: f.duration}
	w.runs.remove(f.execution)
	w.tell(out)
	a := answerTo(f.delivery, out)
	w.ringAgain(f.delivery, a)
	w.letGo(f.delivery, a)
}
