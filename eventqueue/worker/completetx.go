package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// ErrCompleted is the error of a second CompleteTx, or CompleteIn, of a run: the first one has completed
// the event, and the second has written nothing. After a CompleteIn it is also that of a run whose lock is
// lost.
var ErrCompleted = errors.New("the event is completed already, by this run: complete it once, with all that it writes")

// CompleteTx implements Completer.
func (x *execution) CompleteTx(ctx context.Context, f func(ctx context.Context, tx *eventqueue.Tx) error) error {
	if x.completed.Load() {
		return x.alreadyCompleted()
	}
	err := x.executor.queue.InTxEnding(ctx, &x.run.Event, func(ctx context.Context, tx *eventqueue.Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}
		return x.complete(ctx, tx.DB)
	})
	if err != nil {
		return x.withCause(err)
	}
	x.completed.Store(true)
	return nil
}

// CompleteIn implements Completer.
func (x *execution) CompleteIn(ctx context.Context, tx eventqueue.DB) error {
	if x.completed.Load() {
		return x.alreadyCompleted()
	}
	if err := x.complete(ctx, tx); err != nil {
		return x.withCause(err)
	}
	x.completing.Store(true)
	return nil
}

func (x *execution) alreadyCompleted() error {
	return fmt.Errorf("complete event %s: %w", x.run.ID, ErrCompleted)
}

// busyWait is how long complete waits when a heartbeat is writing the row.
const busyWait = 5 * time.Millisecond

func (x *execution) complete(ctx context.Context, db eventqueue.DB) error {
	completions := []Completion{{Claim: x.claim(), Label: machine.ExecutesToCompletion, Duration: time.Since(x.began), Result: x.resultSet(), RunLog: x.ctx.log.Text(), Unique: x.unique, Grouped: x.grouped}}
	for {
		written, err := x.executor.store.Complete(ctx, db, completions, x.executor.config.RetainHistory)
		switch {
		case err != nil:
			return fmt.Errorf("complete event %s: %w", x.run.ID, err)
		case len(written.Done) == 1:
			return nil
		case len(written.Lost) == 1 && (x.completed.Load() || x.completing.Load()):
			return x.alreadyCompleted()
		case len(written.Lost) == 1:
			return fmt.Errorf("complete event %s: %w", x.run.ID, eventqueue.ErrLockLost)
		}
		select {
		case <-time.After(busyWait):
		case <-ctx.Done():
			return fmt.Errorf("complete event %s: %w", x.run.ID, context.Cause(ctx))
		}
	}
}
