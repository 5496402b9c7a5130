package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// away is a handler whose other side is away.
type away struct{ what string }

func (*away) Handle(context.Context, *eventqueue.Run) error {
	return eventqueue.Unavailable(eventqueue.Permanent(errAway), 0)
}

// registerAway registers a handler for five keys, the last one for a canvas, and returns a change of events that distributes them among these.
func registerAway(t *testing.T, s *script, of func() eventqueue.Handler, after func(i int) int) func(*worker.ClaimResult) {
	t.Helper()
	keys := make([]eventqueue.HandlerKey, 5)
	for i := range keys {
		keys[i] = eventqueue.HandlerKey{Module: "order", Name: "mail", Modifier: fmt.Sprintf("order.%d", i)}
		register := s.handlers.Register
		if i == len(keys)-1 {
			register = func(key eventqueue.HandlerKey, h eventqueue.Handler, policy eventqueue.Policy) error {
				return s.handlers.RegisterOn(rig.Canvas, key, h, policy)
			}
		}
		if err := register(keys[i], of(), eventqueue.Policy{BreakerAfter: after(i)}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	return func(c *worker.ClaimResult) {
		key := keys[n%len(keys)]
		c.Event.Module, c.Event.Name, c.Event.Modifier = key.Module, key.Name, key.Modifier
		n++
	}
}

// A handler that is registered for several keys has one breaker: its other side being away costs 19 events, and not 19 of each key.
func TestRegistrationsOfOneHandlerShareABreaker(t *testing.T) {
	t.Parallel()
	one := &away{"one"}
	twenty := func(int) int { return 20 }
	for name, c := range map[string]struct {
		of         func() eventqueue.Handler
		after      func(i int) int
		middleware []func(eventqueue.Handler) eventqueue.Handler
		want       int // events that fail before all breakers are open
	}{
		"one handler": {of: func() eventqueue.Handler { return one }, after: twenty, want: 19},
		"within middleware": {of: func() eventqueue.Handler { return one }, after: twenty, want: 19, middleware: []func(eventqueue.Handler) eventqueue.Handler{
			func(h eventqueue.Handler) eventqueue.Handler { return eventqueue.HandlerFunc(h.Handle) },
		}},
		"handlers of one type":  {of: func() eventqueue.Handler { return &away{"another"} }, after: twenty, want: 5 * 19},
		"functions":             {of: func() eventqueue.Handler { return eventqueue.HandlerFunc(one.Handle) }, after: twenty, want: 5 * 19},
		"policies of their own": {of: func() eventqueue.Handler { return one }, after: func(i int) int { return 11 + i }, want: 10 + 11 + 12 + 13 + 14},
		"no breaker":            {of: func() eventqueue.Handler { return one }, after: func(int) int { return 0 }, want: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				l := newLively(s)
				l.event = registerAway(t, s, c.of, c.after)
				defer s.startOn(l, worker.Config{Concurrency: 100, Middleware: c.middleware})()
				l.emit(500)
				rig.Pass(10 * time.Minute)
				if n := l.endedAs(machine.FailedForGood); n != c.want {
					t.Errorf("%d events have failed, want %d", n, c.want)
				}
			})
		})
	}
}
