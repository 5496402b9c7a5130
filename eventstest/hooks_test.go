package eventstest_test

import (
	"context"
	"errors"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventstest"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// Middleware is called once for each handler, as in a program, however many events run.
func TestMiddlewareIsCalledOnceForEachHandler(t *testing.T) {
	t.Parallel()
	asked, most := 0, 0
	count := func(next eventqueue.Handler) eventqueue.Handler {
		asked++
		runs := 0
		return eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
			runs++
			most = max(most, runs)
			return next.Handle(ctx, run)
		})
	}
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t)}
	config.Worker.Middleware = []func(eventqueue.Handler) eventqueue.Handler{count}
	q := eventstest.New(t, config)
	for _, name := range []string{"mail", "bill"} {
		h := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil })
		if err := q.Service.Register(eventqueue.HandlerKey{Name: name}, h, eventqueue.Policy{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		emit(t, q, eventqueue.NewEvent{Name: "mail"})
	}
	q.Work()
	q.RequireDrained()
	if asked != 2 || most != 3 {
		t.Errorf("for two handlers it was called %d times, and the one of three runs has seen %d", asked, most)
	}
}

// A middleware that returns no handler fails the test, as it would fail Run of the program.
func TestMiddlewareWithoutAHandlerFails(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t)}
	config.Worker.Middleware = []func(eventqueue.Handler) eventqueue.Handler{func(eventqueue.Handler) eventqueue.Handler { return nil }}
	q := eventstest.New(f, config)
	register(t, q, func() error { return nil })
	emit(t, q, eventqueue.NewEvent{Name: "mail"})
	wantMessage(t, f.messageOf(func() { q.Work() }), "handler WORKER/mail/_: Middleware[0] has returned nil for it")
}

// A run that opens the breaker of its handler uses no attempt of its event, and is one for the test.
func TestRunThatOpensABreakerIsAnAttempt(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "mail", eventqueue.Policy{BreakerAfter: 1}, returns(eventqueue.Unavailable(errDown, 0)))
	first, second := emit(t, q, eventqueue.NewEvent{Name: "mail"}), emit(t, q, eventqueue.NewEvent{Name: "mail"})
	if a := q.Work(); a.Event != first || a.Label != machine.Released || !errors.Is(a.Err, errDown) || a.Delay != 0 {
		t.Errorf("the attempt is %+v", a)
	}
	q.RequireError(first, "mail server")
	if all := q.Drain(); len(all) != 2 || all[0].Event != first || all[1].Event != second {
		t.Errorf("drained: %+v", all)
	}
	for n, id := range map[int]eventqueue.EventID{2: first, 1: second} {
		q.RequireAttempts(id, n)
		q.RequireState(id, eventstest.Waiting)
	}
}

// Each event has a worker of its own, so the breaker stays closed.
func TestRunsBelowTheBreakerFail(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "mail", eventqueue.Policy{BreakerAfter: 2}, returns(eventqueue.Unavailable(errDown, 0)))
	for range 3 {
		emit(t, q, eventqueue.NewEvent{Name: "mail"})
	}
	all := q.Drain()
	for _, a := range all {
		if a.Label != machine.RetryAllowed {
			t.Errorf("%+v", a)
		}
	}
	if len(all) != 3 {
		t.Errorf("drained: %+v", all)
	}
}
