package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

func TestCompleteTxCommitsAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		keep bool
		// fail makes the first run fail inside its transaction.
		fail bool
	}{{"commits", false, false}, {"commits and keeps history", true, false}, {"rolls back", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			r.Exec(`CREATE TABLE mine (n int)`)
			runs := 0 // of the parent, one at a time
			r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
				if string(run.Value) != `"parent"` {
					return nil
				}
				runs++
				return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
					if _, err := tx.Exec(ctx, `INSERT INTO mine VALUES (1)`); err != nil {
						return err
					}
					if _, err := tx.Emit(ctx, r.Event(`"child"`)); err != nil {
						return err
					}
					if c.fail && runs == 1 {
						return errors.New("not yet")
					}
					return nil
				})
			}, rig.Quick())
			r.Start(worker.Config{RetainHistory: c.keep})
			r.Emit(r.Event(`"parent"`))
			r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
			if n := rig.One[int](r, `SELECT count(*) FROM mine`); n != 1 {
				t.Errorf("%d writes of the handler, want 1", n)
			}
			if n := r.Waiting(); n != 0 {
				t.Errorf("%d rows are left", n)
			}
			want := 0
			if c.keep {
				want = 2
			}
			if n := r.Logged("COMPLETED"); n != want {
				t.Errorf("%d completed events are kept, want %d", n, want)
			}
			if n := r.Outcomes.Count(machine.LockLost); n != 0 {
				t.Errorf("%d ends were taken for lost", n)
			}
		})
	}
}

func TestCompleteTxRefusesAStaleClaim(t *testing.T) {
	t.Parallel()
	for name, heartbeatFirst := range map[string]bool{"found by itself": false, "found by a heartbeat before": true} {
		t.Run(name, func(t *testing.T) { t.Parallel(); refusesAStaleClaim(t, heartbeatFirst) })
	}
}

func refusesAStaleClaim(t *testing.T, heartbeatFirst bool) {
	t.Helper()
	r := rig.New(t)
	r.Exec(`CREATE TABLE mine (n int)`)
	errs := make(chan error, 1)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		// Another worker takes the event over.
		r.Exec(`UPDATE events_v2 SET attempts = attempts + 1, locked_at = clock_timestamp()`)
		err := run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			if _, err := tx.Emit(ctx, r.Event(`"child"`)); err != nil {
				return err
			}
			if heartbeatFirst {
				<-ctx.Done()
			}
			_, err := tx.Exec(ctx, `INSERT INTO mine VALUES (1)`)
			return err
		})
		errs <- err
		return err
	}, rig.Quick())
	r.Start(worker.Config{Heartbeat: 100 * time.Millisecond})
	r.Emit(r.Event(`1`))
	if err := <-errs; !errors.Is(err, eventqueue.ErrLockLost) {
		t.Errorf("CompleteTx returned %v", err)
	}
	r.Outcomes.Await(t, machine.LockLost, 1)
	if n, m := rig.One[int](r, `SELECT count(*) FROM mine`), r.Waiting(); n != 0 || m != 1 {
		t.Errorf("%d writes and %d rows, want none and the other worker's one", n, m)
	}
}

// TestEventIsCompletedOnce: a second completion by the same run says so and writes nothing, and an error that
// the handler returns then is logged.
func TestEventIsCompletedOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Exec(`CREATE TABLE mine (n int)`)
	errs := make(chan error, 3)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		write := func(ctx context.Context, tx *eventqueue.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO mine VALUES (1)`)
			return err
		}
		errs <- run.CompleteTx(ctx, write)
		errs <- run.CompleteTx(ctx, write)
		tx, err := r.Pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		errs <- run.CompleteIn(ctx, tx)
		return errors.New("the mail was not sent")
	}, rig.Quick())
	core, logs := observer.New(zap.WarnLevel)
	r.Start(worker.Config{Logger: zap.New(core)})
	r.Emit(r.Event(`1`))
	if err := <-errs; err != nil {
		t.Errorf("the first CompleteTx = %v", err)
	}
	for range 2 {
		if err := <-errs; !errors.Is(err, worker.ErrCompleted) {
			t.Errorf("a second completion = %v, want ErrCompleted", err)
		}
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if n := rig.One[int](r, `SELECT count(*) FROM mine`); n != 1 {
		t.Errorf("%d writes of the handler, want 1", n)
	}
	if lines := logs.FilterMessageSnippet("after its CompleteTx").FilterField(zap.String("error", "the mail was not sent")); lines.Len() != 1 {
		t.Errorf("the error is in %d lines of the log:\n%v", lines.Len(), logs.All())
	}
}

// TestLateCompletionCounts: a handler that returns nil after its time limit completes its event.
func TestLateCompletionCounts(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	policy := rig.Quick()
	policy.Timeout = time.Millisecond
	r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
		<-ctx.Done()
		return nil
	}, policy)
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// TestLogAndRowHaveTheSameError, whatever a handler says, and however.
func TestLogAndRowHaveTheSameError(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("no ", 1<<20)
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New(long) },
		"panic": func() error { panic(long) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			policy := rig.Quick()
			policy.MaxRetries = new(0)
			r.Handle(func(context.Context, *eventqueue.Run) error { return fail() }, policy)
			core, logs := observer.New(zap.DebugLevel)
			r.Start(worker.Config{Logger: zap.New(core)})
			r.Emit(r.Event(`1`))
			r.Outcomes.Await(t, machine.RetryTooMany, 1)
			if n := rig.One[int](r, `SELECT octet_length(last_error) FROM event_log`); n > worker.MaxLastErrorBytes {
				t.Errorf("the row has %d bytes", n)
			}
			for _, line := range logs.All() {
				for key, value := range line.ContextMap() {
					if n := len(fmt.Sprint(value)); n > worker.MaxLastErrorBytes {
						t.Errorf("%s of the line %q has %d bytes", key, line.Message, n)
					}
				}
			}
		})
	}
}

func TestCompletionJoinsTheCallersTransaction(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		tx, err := r.Pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if err := run.CompleteIn(ctx, tx); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
