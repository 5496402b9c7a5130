package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/envelope"
	"eventsv2/internal/runlog"
	"eventsv2/test/rig"
)

// logs adds a line to the log of the run of a context.
func logs(ctx context.Context, line string) {
	ctx.Value(runlog.Key{}).(*runlog.Log).Add(line)
}

// attached is what has become of the logs of runs: that of the ended event, and those of its failed attempts.
const attached = `SELECT concat_ws('; ', (SELECT concat_ws(' ', status, run_log) FROM event_log),
	(SELECT string_agg(concat_ws(' ', attempt, run_log), ', ' ORDER BY attempt) FROM event_attempts))`

// TestLogOfARunIsAttachedToItsEvent by what writes the end of the run, and to nothing else.
func TestLogOfARunIsAttachedToItsEvent(t *testing.T) {
	t.Parallel()
	errNo := errors.New("no luck")
	for name, c := range map[string]struct {
		handle eventqueue.HandlerFunc // after the number of the attempt is logged
		label  machine.Label
		forget bool
		want   string
	}{
		"completed": {func(ctx context.Context, _ *eventqueue.Run) error {
			logs(ctx, "a\x00b")
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			logs(ctx, "c")
			return nil
		}, machine.ExecutesToCompletion, false, "COMPLETED 1\na\uFFFDb\nc"},
		"without history": {func(context.Context, *eventqueue.Run) error { return nil }, machine.ExecutesToCompletion, true, ""},
		"refused":         {func(context.Context, *eventqueue.Run) error { return eventqueue.Permanent(errNo) }, machine.FailedForGood, true, "FAILED 1; 1 1"},
		"panicked":        {func(context.Context, *eventqueue.Run) error { panic("boom") }, machine.RetryTooMany, false, "FAILED 3; 1 1, 2 2, 3 3"},
		"retried": {func(_ context.Context, run *eventqueue.Run) error {
			if run.Attempt < 3 {
				return errNo
			}
			return nil
		}, machine.ExecutesToCompletion, false, "COMPLETED 3; 1 1, 2 2"},
		"snoozed": {func(_ context.Context, run *eventqueue.Run) error {
			if run.Attempt < 2 {
				return eventqueue.Snooze(time.Second)
			}
			return nil
		}, machine.ExecutesToCompletion, false, "COMPLETED 2"},
		"in a transaction of its own": {func(ctx context.Context, run *eventqueue.Run) error {
			defer logs(ctx, "after")
			return run.CompleteTx(ctx, func(ctx context.Context, _ *eventqueue.Tx) error { logs(ctx, "within"); return nil })
		}, machine.ExecutesToCompletion, false, "COMPLETED 1\nwithin"},
		"rolled back": {func(ctx context.Context, run *eventqueue.Run) error {
			if run.Attempt > 1 {
				return nil
			}
			defer logs(ctx, "after")
			return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return errNo })
		}, machine.ExecutesToCompletion, false, "COMPLETED 2; 1 1\nafter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				policy := rig.Quick()
				policy.MaxRetries = new(2)
				r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
					logs(ctx, fmt.Sprint(run.Attempt))
					return c.handle(ctx, run)
				}, policy)
				defer r.Start(worker.Config{RetainHistory: !c.forget})()
				r.Emit(r.Event(`1`))
				r.Outcomes.Await(t, c.label, 1)
				if got := rig.One[string](r, attached); got != c.want {
					t.Errorf("it has %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestLogOfARunIsBounded, also of one whose goroutines log at once.
func TestLogOfARunIsBounded(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() { logs(ctx, strings.Repeat("é", 50)) })
			}
			all.Wait()
			return nil
		}, rig.Quick())
		defer r.Start(worker.Config{RetainHistory: true})()
		r.Emit(r.Event(`1`))
		r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
		got := rig.One[string](r, `SELECT run_log FROM event_log`)
		if !strings.HasPrefix(got, "50 lines before these are left out\n") || strings.Count(got, "\n") != 50 || len(got) > runlog.MaxBytes {
			t.Errorf("it has %d bytes: %s", len(got), got)
		}
	})
}

// TestEndOfARunEndsItsLog: what a handler logs that returns late, or in a goroutine that it has left behind, is dropped.
func TestEndOfARunEndsItsLog(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		var behind sync.WaitGroup
		goOn := make(chan struct{})
		r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
			logs(ctx, "in time")
			behind.Go(func() {
				<-goOn
				logs(ctx, "late")
			})
			return nil
		}, rig.Quick())
		defer r.Start(worker.Config{RetainHistory: true})()
		r.Emit(r.Event(`1`))
		r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
		close(goOn)
		behind.Wait()
		r.Emit(r.Event(`2`))
		r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
		if got := rig.One[string](r, `SELECT string_agg(run_log, ', ') FROM event_log`); got != "in time, in time" {
			t.Errorf("the runs have logged %q", got)
		}
	})
}

// TestEncryptedEventHasNoLog: the values that its handler may log are not for the database.
func TestEncryptedEventHasNoLog(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
			logs(ctx, string(run.Value))
			if run.Attempt == 1 {
				return errors.New("no luck")
			}
			return nil
		}, rig.Quick())
		config := worker.Config{RetainHistory: true, OpenValue: func(*eventqueue.Event) (json.RawMessage, error) { return json.RawMessage(`"secret"`), nil }}
		defer r.Start(config)()
		r.Emit(r.Event(string(envelope.Make(7, []byte("abc")))))
		r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
		if got := rig.One[string](r, attached); got != "COMPLETED; 1" {
			t.Errorf("it has %q", got)
		}
	})
}
