package eventstest_test

import (
	"context"
	"testing"

	"eventsv2/eventqueue"
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
