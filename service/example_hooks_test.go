package service_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"os"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/service"
)

// reportError sends each failed attempt to an error reporter; here to a logger.
func reportError(reporter *slog.Logger) func(context.Context, worker.FailedRun) {
	return func(ctx context.Context, failed worker.FailedRun) {
		level := slog.LevelWarn // it is tried again
		if failed.Last {
			level = slog.LevelError // the event is FAILED
		}
		reporter.Log(ctx, level, failed.Err.Error(), "event", failed.Event.ID, "handler", failed.Event.Handler(),
			"attempt", failed.Attempt, "panicked", failed.Stack != nil)
	}
}

// An error reporter gets each failed attempt, and knows which was the last.
func ExampleConfig_errorReporter() {
	reporter := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	config := service.Config{DatabaseURL: os.Getenv("DATABASE_URL")}
	config.Worker.OnError = reportError(reporter)
	// The worker calls it as follows.
	failed := worker.FailedRun{Event: eventqueue.Event{ID: 7, Module: "WORKER", Name: "charge", Modifier: "_"}, Attempt: 3, Last: true, Err: errors.New("card declined")}
	config.Worker.OnError(context.Background(), failed)
	// Output: level=ERROR msg="card declined" event=7 handler=WORKER/charge/_ attempt=3 panicked=false
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

var runs, seconds, failures = expvar.NewMap("runs"), expvar.NewMap("run_seconds"), expvar.NewMap("run_failures")

// measured counts the runs of a handler, and sums up how long they take.
func measured(next eventqueue.Handler) eventqueue.Handler {
	return eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
		began := time.Now()
		defer func() { // also after a panic
			runs.Add(run.Name, 1)
			seconds.AddFloat(run.Name, time.Since(began).Seconds())
		}()
		return next.Handle(ctx, run)
	})
}

func countFailure(_ context.Context, failed worker.FailedRun) { failures.Add(failed.Event.Name, 1) }

// Metrics of a program's own come from middleware and from OnError.
func ExampleConfig_metrics() {
	config := service.Config{DatabaseURL: os.Getenv("DATABASE_URL")}
	config.Worker.Middleware = []func(eventqueue.Handler) eventqueue.Handler{measured}
	config.Worker.OnError = countFailure
	// The worker does as follows.
	event := eventqueue.Event{Name: "charge"}
	charge := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return errors.New("card declined") })
	err := config.Worker.Middleware[0](charge).Handle(context.Background(), &eventqueue.Run{Event: event})
	config.Worker.OnError(context.Background(), worker.FailedRun{Event: event, Err: err})
	fmt.Println(runs.Get("charge"), "run,", failures.Get("charge"), "failure")
	// Output: 1 run, 1 failure
}

var errRetired = errors.New("the handler fax is retired: emit for mail")

// stamped gives events the region in which they are emitted, and refuses those of a handler that is retired.
func stamped(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
	for _, e := range events {
		if e.Name == "fax" {
			return nil, errRetired
		}
		e.Attributes["region"] = "europe-west1"
	}
	return next(ctx, events)
}

// Middleware around emits changes events, or refuses them before anything is written.
func ExampleConfig_emitMiddleware() {
	config := service.Config{DatabaseURL: os.Getenv("DATABASE_URL")}
	config.Queue.EmitMiddleware = []eventqueue.EmitMiddleware{stamped}
	// An emit does as follows.
	_, err := config.Queue.EmitMiddleware[0](context.Background(), []eventqueue.NewEvent{{Name: "fax"}}, nil)
	fmt.Println(err)
	// Output: the handler fax is retired: emit for mail
}
