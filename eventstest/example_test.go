package eventstest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventstest"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// The mail server is down at first. An hour later, which takes no time, it is up again.
func Example() {
	t, end := newTest() // that of your test: func TestMail(t *testing.T)
	defer end()
	q := eventstest.New(t, service.Config{DatabaseURL: testenv.DatabaseURL(t)}) // yours: eventstest.Database(t, os.Getenv("DATABASE_URL"))
	up := false
	mail := func(_ context.Context, e OrderPlaced, _ *eventqueue.Run) error {
		if !up {
			return errors.New("the mail server is down")
		}
		fmt.Println("mail about order", e.Order)
		return nil
	}
	if err := service.On(q.Service, "mail", mail); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Service.EmitTyped(t.Context(), OrderPlaced{Order: 17}); err != nil {
		t.Fatal(err)
	}
	q.RequireEmitted(OrderPlaced{Order: 17})

	q.Drain() // the dispatch of the typed event, and the event of its handler
	event := q.RequireEmitted(eventqueue.NewEvent{Module: "ORDER", Name: "mail"})
	q.RequireAttempts(event.ID, 1)
	q.RequireError(event.ID, "server is down")

	up = true
	q.Advance(time.Hour)
	q.RequireDrained()
	q.RequireState(event.ID, eventstest.Completed)
	// Output: mail about order 17
}

// A handler that completes its event in a transaction needs a run with an event.
func ExampleQueue_Begin() {
	t, end := newTest()
	defer end()
	q := eventstest.New(t, service.Config{DatabaseURL: testenv.DatabaseURL(t)})
	reply := func(ctx context.Context, run *eventqueue.Run) error {
		return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			_, err := tx.Emit(ctx, eventqueue.NewEvent{Name: "replied", Value: run.Value})
			return err
		})
	}

	ctx, run := q.Begin(eventqueue.NewEvent{Name: "question", Value: []byte(`"why?"`)})
	if err := reply(ctx, run); err != nil {
		t.Fatal(err)
	}
	q.RequireState(run.ID, eventstest.Completed)
	fmt.Println(q.RequireEmitted(eventqueue.NewEvent{Name: "replied", ParentID: run.ID}))
	// Output: event 2 for WORKER/replied/_: "why?"
}

// newTest stands for the test that an example is part of: examples have none.
func newTest() (t testing.TB, end func()) {
	e := &exampleTest{}
	var stop context.CancelFunc
	e.ctx, stop = context.WithCancel(context.Background())
	return e, func() {
		stop()
		for i := len(e.cleanups) - 1; i >= 0; i-- {
			e.cleanups[i]()
		}
	}
}

type exampleTest struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

func (e *exampleTest) Helper()                  {}
func (e *exampleTest) Name() string             { return "Example" }
func (e *exampleTest) Context() context.Context { return e.ctx }
func (e *exampleTest) Cleanup(f func())         { e.cleanups = append(e.cleanups, f) }
func (e *exampleTest) Failed() bool             { return false }
func (e *exampleTest) Logf(string, ...any)      {}
func (e *exampleTest) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stdout, format+"\n", args...)
}
func (e *exampleTest) Error(args ...any)                 { fmt.Fprintln(os.Stdout, args...) }
func (e *exampleTest) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (e *exampleTest) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
