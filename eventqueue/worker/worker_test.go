package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

func TestEventRunsOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	values := make(chan string, 10)
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		values <- string(run.Value)
		return nil
	}, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`{"a": 1 }`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if got := <-values; got != `{"a": 1 }` {
		t.Errorf("the handler saw %s", got)
	}
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestFailingEventEndsInTheLog(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(context.Context, *eventqueue.Run) error { return errors.New("no luck") }, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`7`))
	r.Outcomes.Await(t, machine.RetryTooMany, 1)
	if n := r.Outcomes.Count(machine.RetryAllowed); n != 2 {
		t.Errorf("%d retries, want 2", n)
	}
	if got := rig.One[string](r, `SELECT status::text || ' ' || value || ' ' || last_error || ' ' || retries || ' ' || attempts FROM event_log`); got != "FAILED 7 no luck 2 3" {
		t.Errorf("event_log says %q", got)
	}
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestBacklogIsDrained(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	events := make([]eventqueue.NewEvent, 3_000)
	for i := range events {
		events[i] = r.Event(`{"n": 1}`)
	}
	r.Emit(events...)
	r.Start(worker.Config{Concurrency: 2000})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, len(events))
	t.Log(r.Outcomes.Summary())
}

func TestHandlerOfACanvasTakesPrecedence(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ran := make(chan string, 10)
	named := func(name string) eventqueue.HandlerFunc {
		return func(context.Context, *eventqueue.Run) error { ran <- name; return nil }
	}
	r.Handle(named("everywhere"), rig.Quick())
	other := rig.Canvas
	other[15]++
	if err := r.Handlers.RegisterOn(other, rig.Key, named("on the canvas"), rig.Quick()); err != nil {
		t.Fatal(err)
	}
	alone := eventqueue.HandlerKey{Module: "WORKER", Name: "alone", Modifier: "_"}
	if err := r.Handlers.RegisterOn(other, alone, named("alone"), rig.Quick()); err != nil {
		t.Fatal(err)
	}
	r.Start(worker.Config{})
	onOther := r.Event(`1`)
	onOther.Canvas = other
	aloneThere, aloneHere := onOther, r.Event(`1`)
	aloneThere.Name, aloneHere.Name = alone.Name, alone.Name
	for _, c := range []struct {
		event eventqueue.NewEvent
		want  string
	}{{r.Event(`1`), "everywhere"}, {onOther, "on the canvas"}, {aloneThere, "alone"}} {
		r.Emit(c.event)
		if got := <-ran; got != c.want {
			t.Errorf("the handler %q ran, want %q", got, c.want)
		}
	}
	r.Emit(aloneHere)
	r.Outcomes.Await(t, machine.HandlerUnknown, 1)
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	handler := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil })
	negative := -1
	handlers := eventqueue.NewHandlers()
	if err := handlers.Register(rig.Key, handler, eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"registered twice":         handlers.Register(rig.Key, handler, eventqueue.Policy{}),
		"is nil":                   handlers.RegisterOn(rig.Canvas, rig.Key, nil, eventqueue.Policy{}),
		"module: is empty":         handlers.Register(eventqueue.HandlerKey{Name: "n", Modifier: "_"}, handler, eventqueue.Policy{}),
		"MaxRetries is -1":         handlers.RegisterOn(rig.Canvas, rig.Key, handler, eventqueue.Policy{MaxRetries: &negative}),
		"Timeout is -1ns: it must": handlers.RegisterOn(rig.Canvas, rig.Key, handler, eventqueue.Policy{Timeout: -1}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
