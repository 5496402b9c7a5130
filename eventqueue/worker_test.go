package eventqueue_test

import (
	"context"
	"errors"
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
