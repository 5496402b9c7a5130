package eventqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

func TestAnEventRunsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	values := make(chan string, 10)
	r.handle(func(_ context.Context, run *eventqueue.Run) error {
		values <- string(run.Value)
		return nil
	}, quick())
	r.start(eventqueue.WorkerConfig{})
	r.emit(r.event(`{"a": 1 }`))
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
	if got := <-values; got != `{"a": 1 }` {
		t.Errorf("the handler saw %s", got)
	}
	if n := r.waiting(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestAFailingEventEndsInTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(func(context.Context, *eventqueue.Run) error { return errors.New("no luck") }, quick())
	r.start(eventqueue.WorkerConfig{})
	r.emit(r.event(`7`))
	r.outcomes.await(t, machine.RetryTooMany, 1)
	if n := r.outcomes.count(machine.RetryAllowed); n != 2 {
		t.Errorf("%d retries, want 2", n)
	}
	if got := one[string](r, `SELECT status::text || ' ' || value || ' ' || last_error || ' ' || retries || ' ' || attempts FROM event_log`); got != "FAILED 7 no luck 2 3" {
		t.Errorf("event_log says %q", got)
	}
	if n := r.waiting(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	events := make([]eventqueue.NewEvent, 10_000)
	for i := range events {
		events[i] = r.event(`{"n": 1}`)
	}
	r.emit(events...)
	r.start(eventqueue.WorkerConfig{Concurrency: 2000})
	r.outcomes.await(t, machine.ExecutesToCompletion, len(events))
	t.Log(r.outcomes.summary())
}

func TestAHandlerOfACanvasWins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ran := make(chan string, 10)
	named := func(name string) eventqueue.HandlerFunc {
		return func(context.Context, *eventqueue.Run) error { ran <- name; return nil }
	}
	r.handle(named("everywhere"), quick())
	other := canvas
	other[15]++
	if err := r.handlers.RegisterOn(other, key, named("on the canvas"), quick()); err != nil {
		t.Fatal(err)
	}
	alone := eventqueue.HandlerKey{Module: "WORKER", Name: "alone", Modifier: "_"}
	if err := r.handlers.RegisterOn(other, alone, named("alone"), quick()); err != nil {
		t.Fatal(err)
	}
	r.start(eventqueue.WorkerConfig{})
	onOther := r.event(`1`)
	onOther.Canvas = other
	aloneThere, aloneHere := onOther, r.event(`1`)
	aloneThere.Name, aloneHere.Name = alone.Name, alone.Name
	for _, c := range []struct {
		event eventqueue.NewEvent
		want  string
	}{{r.event(`1`), "everywhere"}, {onOther, "on the canvas"}, {aloneThere, "alone"}} {
		r.emit(c.event)
		if got := <-ran; got != c.want {
			t.Errorf("the handler %q ran, want %q", got, c.want)
		}
	}
	r.emit(aloneHere)
	r.outcomes.await(t, machine.HandlerUnknown, 1)
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	handler := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil })
	negative := -1
	handlers := eventqueue.NewHandlers()
	if err := handlers.Register(key, handler, eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"registered twice":         handlers.Register(key, handler, eventqueue.Policy{}),
		"is nil":                   handlers.RegisterOn(canvas, key, nil, eventqueue.Policy{}),
		"module: is empty":         handlers.Register(eventqueue.HandlerKey{Name: "n", Modifier: "_"}, handler, eventqueue.Policy{}),
		"MaxRetries is -1":         handlers.RegisterOn(canvas, key, handler, eventqueue.Policy{MaxRetries: &negative}),
		"Timeout is -1ns: it must": handlers.RegisterOn(canvas, key, handler, eventqueue.Policy{Timeout: -1}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
