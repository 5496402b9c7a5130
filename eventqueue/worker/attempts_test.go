package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestErrorsOfAnyTextAreRecorded: a megabyte with NULs and bytes that are no text is cut to what a
// column takes, and its event is tried again.
func TestErrorsOfAnyTextAreRecorded(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	var runs atomic.Int32
	r.Handle(func(context.Context, *eventqueue.Run) error {
		if runs.Add(1) > 1 {
			return nil
		}
		return errors.New("bad \x00 \xff bytes " + strings.Repeat("é\x00\xff", 1<<18))
	}, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	got := rig.One[string](r, `SELECT error FROM event_attempts`)
	if !strings.HasPrefix(got, "bad \uFFFD \uFFFD bytes é") || len(got) > worker.MaxLastErrorBytes || len(got) < worker.MaxLastErrorBytes-4 {
		t.Errorf("the attempt has an error of %d bytes: %.40q", len(got), got)
	}
}

// TestUnrecordedAttemptIsRepeated (I13): where the database refuses the record, the
// event is tried again without it, and the events that ended with it have theirs.
func TestUnrecordedAttemptIsRepeated(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Exec(`ALTER TABLE event_attempts ADD CHECK (error <> 'refuse me')`)
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		switch {
		case run.Retries > 0:
			return nil
		case string(run.Value) == `13`:
			return errors.New("refuse me")
		default:
			return errors.New("no luck")
		}
	}, rig.Quick())
	events := []eventqueue.NewEvent{r.Event(`13`)}
	for range 20 {
		events = append(events, r.Event(`1`))
	}
	r.Emit(events...)
	r.Start(worker.Config{})
	testenv.Eventually(t, "all are put off, or one of them is given up", func() bool {
		return r.Outcomes.Count(machine.RetryAllowed) == len(events) || r.Outcomes.Count(machine.Exception) > 0
	})
	if n := r.Outcomes.Count(machine.Exception); n != 0 {
		t.Fatalf("%d events were given up", n)
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, len(events))
	if n := rig.One[int](r, `SELECT count(*) FROM event_attempts WHERE error = 'no luck' AND worker IS NOT NULL`); n != 20 {
		t.Errorf("%d attempts are recorded, want 20", n)
	}
}

// TestRunsAreRecorded: of a panic the stack is, and of the run that completes the event, also in a transaction, how long
// it took and its worker.
func TestRunsAreRecorded(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		switch {
		case run.Retries == 0:
			panic("boom")
		case string(run.Value) == `1`:
			return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
		}
		return nil
	}, rig.Quick())
	r.Start(worker.Config{RetainHistory: true})
	r.Emit(r.Event(`1`), r.Event(`2`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	if n := rig.One[int](r, `SELECT count(*) FROM event_attempts WHERE error = 'the handler panicked: boom' AND stack LIKE '%attempts_test.go%'`); n != 2 {
		t.Errorf("%d attempts have the stack of their panic, want 2", n)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM event_log WHERE status = 'COMPLETED' AND duration > '0' AND worker IS NOT NULL`); n != 2 {
		t.Errorf("%d completed events have their run, want 2", n)
	}
}

// TestRolledBackCompletionIsRecorded: the attempt is, with the error that undid the
// transaction; the run that completes in one records nothing.
func TestRolledBackCompletionIsRecorded(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error {
			if run.Retries == 0 {
				return errors.New("the ledger is closed")
			}
			return nil
		})
	}, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if got := rig.One[string](r, `SELECT string_agg(attempt || ' ' || error, ', ') FROM event_attempts`); got != "1 the ledger is closed" {
		t.Errorf("the attempts are %q", got)
	}
}
