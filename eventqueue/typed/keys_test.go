package typed_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/typed"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestAsynchronousHandlersKeepTheOrder of the key with which their events were emitted, and have it.
func TestAsynchronousHandlersKeepTheOrder(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	for _, name := range []string{"mail", "index"} {
		r.ok(typed.On(r.bus, name, func(_ context.Context, e recordCreated, run *eventqueue.Run) error {
			r.called(name + " " + e.ID + " " + run.OrderingKey)
			return nil
		}))
	}
	const events = 30
	want := map[string][]string{}
	for n := range events {
		id := fmt.Sprint(n)
		r.emitTyped(typed.With(recordCreated{recordEvent: recordEvent{id}}, func(e *eventqueue.NewEvent) { e.OrderingKey = "record" }))
		for _, name := range []string{"mail", "index"} {
			want[name] = append(want[name], name+" "+id+" record")
		}
	}
	r.run()
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 3*events)
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, order := range want {
		got := slices.DeleteFunc(slices.Clone(r.calls), func(call string) bool { return !strings.HasPrefix(call, name) })
		if !slices.Equal(got, order) {
			t.Errorf("the handler ran %q, want %q", got, order)
		}
	}
}

// TestAsynchronousHandlersHaveThePriority of the event that was emitted.
func TestAsynchronousHandlersHaveThePriority(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	for _, name := range []string{"mail", "index"} {
		r.ok(typed.On(r.bus, name, func(_ context.Context, e recordCreated, run *eventqueue.Run) error {
			r.called(fmt.Sprintf("%s %s %q", name, e.ID, run.Priority))
			return nil
		}))
	}
	for _, priority := range []string{"high", "normal", "low"} {
		r.emitTyped(typed.With(recordCreated{recordEvent: recordEvent{priority}}, func(e *eventqueue.NewEvent) { e.Priority = priority }))
	}
	relay := r.Relay(maintenance.RelayConfig{})
	for _, ended := range []int{7, 9} { // the relay publishes what is of low priority: the dispatch, and then the rest
		if _, err := relay.Pass(testenv.Context(t)); err != nil {
			t.Fatal(err)
		}
		if ended == 7 {
			r.run()
		}
		r.Outcomes.Await(t, machine.ExecutesToCompletion, ended)
	}
	for _, name := range []string{"mail", "index"} {
		for _, call := range []string{name + ` high "high"`, name + ` normal ""`, name + ` low "low"`} {
			if r.count(call) != 1 {
				t.Errorf("%s was called %d times", call, r.count(call))
			}
		}
	}
}

// TestUniqueKeyHoldsUntilTheLastHandlerHasEnded, with its time after that.
func TestUniqueKeyHoldsUntilTheLastHandlerHasEnded(t *testing.T) {
	t.Parallel()
	for _, uniqueFor := range []time.Duration{0, time.Hour} {
		r := newTypedRig(t)
		release := make(chan struct{})
		note(r, "mail", func(e recordCreated) string { return e.ID })
		r.ok(typed.On(r.bus, "index", func(ctx context.Context, _ recordCreated, run *eventqueue.Run) error {
			if run.UniqueKey != "k" {
				return eventqueue.Permanent(fmt.Errorf("the key is %q", run.UniqueKey))
			}
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))
		emit := func() eventqueue.Emitted {
			t.Helper()
			e, err := r.bus.NewEvent(rig.Canvas, typed.With(recordCreated{recordEvent: recordEvent{"7"}}, func(e *eventqueue.NewEvent) {
				e.UniqueKey, e.UniqueFor = "k", uniqueFor
			}))
			r.ok(err)
			emitted, err := r.Queue.EmitUnique(testenv.Context(t), e)
			r.ok(err)
			return emitted[0]
		}
		first := emit()
		r.run()
		r.Outcomes.Await(t, machine.ExecutesToCompletion, 2) // the dispatch, and mail
		if again := emit(); again.New || again.ID != first.ID {
			t.Errorf("while a handler runs: %+v, want event %s", again, first.ID)
		}
		close(release)
		r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
		if again := emit(); again.New != (uniqueFor == 0) {
			t.Errorf("after the end of all, with %s: %+v", uniqueFor, again)
		}
	}
}

// TestWithSetsWhatBelongsToTheEmit, and nothing of the event itself.
func TestWithSetsWhatBelongsToTheEmit(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	r.ok(typed.Declare[recordCreated](r.bus))
	event := recordCreated{recordEvent: recordEvent{"7"}, Title: "x"}
	plain, err := r.bus.NewEvent(rig.Canvas, event)
	r.ok(err)
	set := eventqueue.NewEvent{Module: "M", Name: "n", Modifier: "m", Value: []byte(`1`), Delay: time.Minute, OrderingKey: "o", UniqueKey: "u", UniqueMode: "replace",
		MaxWait: time.Hour, Attributes: map[string]string{"a": "b"}, ParentID: 7, Priority: "high"}
	got, err := r.bus.NewEvent(rig.Canvas, typed.With(event, func(e *eventqueue.NewEvent) { *e = set }))
	r.ok(err)
	set.Canvas, set.Module, set.Name, set.Modifier, set.Value = plain.Canvas, plain.Module, plain.Name, plain.Modifier, plain.Value
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", set) {
		t.Errorf("emitted %+v, want %+v", got, set)
	}
}
