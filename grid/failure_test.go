package grid_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
)

// What fails for good, and what it says.
func TestPermanentFailuresAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		config  grid.Config
		options []grid.Option
		bad     does
		value   any
		// attempts is how often the bad action runs. Less than 2: it is not tried again.
		attempts int
		want     string
	}{
		{name: "an error", attempts: 2, bad: func(context.Context, call) (string, error) { return "", errors.New("no luck") },
			want: "grid g: actions.bad (do): no luck"},
		{name: "a permanent error", attempts: 1, bad: func(context.Context, call) (string, error) { return "", eventqueue.Permanent(errors.New("no use")) },
			want: "grid g: actions.bad (do): no use"},
		{name: "a panic", attempts: 2, bad: func(context.Context, call) (string, error) { panic("boom") },
			want: "grid g: actions.bad (do): the handler panicked: boom"},
		{name: "a goroutine that ends", attempts: 2, bad: func(context.Context, call) (string, error) {
			runtime.Goexit()
			return "", nil
		}, want: "grid g: actions.bad (do): the action ended its goroutine without returning"},
		{name: "time that has passed", attempts: 2, options: []grid.Option{grid.Timeout(time.Millisecond)}, bad: func(ctx context.Context, _ call) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, want: "grid g: actions.bad (do): its time of 1ms has passed: context deadline exceeded"},
		{name: "an output that is too large", attempts: 1, config: grid.Config{MaxOutputBytes: 20}, bad: func(context.Context, call) (string, error) {
			return strings.Repeat("x", 19), nil
		}, want: "grid g: actions.bad (do): its output is 21 bytes long as JSON: the limit is 20"},
		{name: "an event that fits no input", attempts: 0, value: map[string]int{"x": 1},
			want: "grid g: the event does not fit actions.good.inputs.a: it is an object: it must be a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if c.bad != nil {
				r.on("bad", c.bad)
			}
			if c.value == nil {
				c.value = "x"
			}
			once := 1
			c.config.Policy.MaxRetries = &once
			label := machine.RetryTooMany
			if c.attempts < 2 {
				label = machine.FailedForGood
			}
			c.config.Concurrency = 1
			g := r.grid(r.actions(c.options...), "good a=event", "bad", "after a=bad", "last")
			r.start(g, c.config, worker.Config{})
			r.emit(c.value)
			if out := r.await(machine.RetryTooMany, machine.FailedForGood); out.Label != label {
				t.Errorf("the run ended as %s, want %s", out.Label, label)
			}
			if got := r.lastError(); !strings.HasPrefix(got, c.want) {
				t.Errorf("the error is %s\nwant %s", got, c.want)
			}
			bad := slices.DeleteFunc(r.calls(), func(name string) bool { return name != "bad" })
			if len(bad) != c.attempts {
				t.Errorf("the action ran %d times, want %d", len(bad), c.attempts)
			}
			if slices.Contains(r.calls(), "after") {
				t.Error("an action ran that needs the one that failed")
			}
		})
	}
}

type unreadable struct{}

func (unreadable) MarshalJSON() ([]byte, error) { return nil, errors.New("cannot be written") }

func TestUnwritableOutputFailsItsAction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	actions := r.actions()
	if err := grid.Register(actions, "odd", func(context.Context, grid.Call[grid.None, grid.None, grid.None]) (any, error) {
		return unreadable{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	g, err := grid.Parse("test", []byte("grid: g\nactions: {a: {use: odd}}"), actions, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.start(g, grid.Config{}, worker.Config{})
	r.emit(1)
	r.await(machine.FailedForGood)
	if got := r.lastError(); !strings.Contains(got, "actions.a (odd): its output cannot be written as JSON: ") || !strings.Contains(got, "cannot be written") {
		t.Errorf("the error is %s", got)
	}
}

// A permanent failure waits for what runs and starts nothing else.
func TestPermanentFailureStartsNoOtherAction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	failed := make(chan struct{})
	r.on("bad", func(context.Context, call) (string, error) {
		defer close(failed)
		return "", eventqueue.Permanent(errors.New("no use"))
	})
	r.on("slow", func(ctx context.Context, _ call) (string, error) {
		select {
		case <-failed:
		case <-ctx.Done():
		}
		return "done", context.Cause(ctx)
	})
	r.start(r.definition("bad", "slow", "never a=slow"), grid.Config{}, worker.Config{})
	r.emit(1)
	r.await(machine.FailedForGood)
	r.wantOutputs(`slow/1 "done"`)
	r.wantCalls("bad", "slow")
}

// Only snoozes: no attempt is used, and what has finished stays so. With a failure
// beside it, that counts.
func TestSnoozeUsesNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	times := 0
	r.on("later", func(context.Context, call) (string, error) {
		if times++; times < 4 {
			return "", eventqueue.Snooze(time.Millisecond)
		}
		return "", errors.New("never")
	})
	never := 0
	r.start(r.definition("first", "later a=first", "hour"), grid.Config{Policy: eventqueue.Policy{MaxRetries: &never}}, worker.Config{})
	hours := 0
	r.on("hour", func(context.Context, call) (string, error) {
		if hours++; hours < 3 {
			return "", eventqueue.Snooze(time.Hour)
		}
		return "", nil
	})
	r.emit(1)
	r.await(machine.Snoozed)
	r.await(machine.Snoozed)
	r.await(machine.Snoozed)
	r.await(machine.RetryTooMany)
	r.wantCalls("first", "later", "later", "later", "later", "hour", "hour", "hour")
}

func TestFailureBesideASnoozeUsesAnAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.on("bad", func(context.Context, call) (string, error) { return "", errors.New("no luck") })
	r.on("later", func(context.Context, call) (string, error) { return "", eventqueue.Snooze(time.Millisecond) })
	never := 0
	r.start(r.definition("bad", "later"), grid.Config{Policy: eventqueue.Policy{MaxRetries: &never}}, worker.Config{})
	r.emit(1)
	r.await(machine.RetryTooMany)
	if want := "grid g: actions.bad (do): no luck\nactions.later (do): snoozed for 1ms"; r.lastError() != want {
		t.Errorf("the error is %s", r.lastError())
	}
}
