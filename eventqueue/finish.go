package eventqueue

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
)

// finished is a run that has ended and waits for its end to be written.
type finished struct {
	delivery Delivery
	run      *Run
	end      End
	state    machine.State // where the machine stands: Delete or Queue
	err      error
	duration time.Duration
}

// MaxLastErrorBytes is how much of an error event_log keeps.
const MaxLastErrorBytes = 8 << 10

// finished judges a run: what is to be written about it.
func (x *execution) finished(verdict machine.Label, err error) finished {
	f := finished{delivery: x.delivery, run: x.run, err: err, duration: time.Since(x.began)}
	f.state, f.end.Label = machine.Judge(machine.Run{
		Verdict: verdict, Retries: x.run.Retries, MaxRetries: *x.policy.MaxRetries,
	})
	f.end.Claim = x.run.claim()
	var snooze *snoozeError
	switch {
	case f.end.Label == machine.RetryAllowed:
		f.end.Delay = max(x.policy.Backoff(x.run.Retries+1), 0)
	case errors.As(err, &snooze):
		f.end.Delay = snooze.delay
	}
	if err != nil {
		f.end.LastError = storable(err.Error())
	}
	return f
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
	finishLinger = 3 * time.Millisecond
)

// finish writes the ends of runs until w.ends is closed: whatever has come
// together goes into one statement.
func (w *Worker) finish(ctx context.Context) {
	for first := range w.ends {
		batch := w.collect(first)
		w.writeEnds(ctx, batch)
	}
}

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
// stands alone: no event spoils the end of another (I15).
func (w *Worker) writeEnds(ctx context.Context, batch []finished) {
	ends := make([]End, 0, len(batch))
	for _, f := range batch {
		if !f.run.completed {
			ends = append(ends, f.end)
		}
	}
	wait := newFailureWait(w.config.Jitter)
	for {
		written, err := w.writeOnce(ctx, ends)
		switch {
		case err == nil:
			w.settle(batch, written)
			return
		case refused(err) && len(batch) > 1:
			w.writeEnds(ctx, batch[:len(batch)/2])
			w.writeEnds(ctx, batch[len(batch)/2:])
			return
		case refused(err) || ctx.Err() != nil:
			w.unwritten(batch, err)
			return
		}
		w.log.Warn("could not write how events ended", zap.Int(logCount, len(batch)),
			zap.Duration(logWait, wait.next), zap.Error(err))
		wait.pause(ctx)
	}
}

func (w *Worker) writeOnce(ctx context.Context, ends []End) ([]EventID, error) {
	if len(ends) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.config.LockTimeout/2)
	defer cancel()
	return w.store.Finish(ctx, nil, ends, w.config.KeepHistory)
}

// refused tells whether the database has judged the statement's data, so that
// the same statement would fail again. Classes 22 and 23 of SQLSTATE are data
// exceptions and violated constraints; 54 are exceeded limits.
func refused(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	class := pg.Code[:2]
	return class == "22" || class == "23" || class == "54"
}

// settle answers the notifications of ends that were written, and of those that
// the fence refused.
func (w *Worker) settle(batch []finished, written []EventID) {
	held := make(map[EventID]struct{}, len(written))
	for _, id := range written {
		held[id] = struct{}{}
	}
	for i := range batch {
		f := &batch[i]
		label, to, delay := f.end.Label, f.state, f.end.Delay
		if f.state == machine.Delete {
			to = machine.Follow(machine.Delete, machine.Deleted).To
		}
		if _, ok := held[f.run.ID]; !ok && !f.run.completed && !f.run.completing {
			arrow := machine.Follow(writer(f), machine.LockLost)
			label, to, delay = arrow.Label, arrow.To, 0
		}
		w.close(f, label, to, delay)
	}
}

// unwritten gives the notifications back when the ends could not be written.
// The locks expire, which counts as a failed attempt.
func (w *Worker) unwritten(batch []finished, err error) {
	w.log.Error("could not write how events ended; their locks will expire", zap.Int(logCount, len(batch)), zap.Error(err))
	for i := range batch {
		f := &batch[i]
		f.err = errors.Join(f.err, err)
		w.close(f, machine.Exception, machine.Queue, w.config.LockTimeout)
	}
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

func (w *Worker) close(f *finished, label machine.Label, to machine.State, delay time.Duration) {
	out := Outcome{Event: f.run.ID, Canvas: f.run.Canvas, Handler: f.run.Handler(), Label: label, To: to,
		Attempt: f.run.Attempt, Delay: delay, Err: f.err, Duration: f.duration}
	w.tell(out)
	w.answers <- answerTo(f.delivery, out)
	w.slots.give(1)
}
