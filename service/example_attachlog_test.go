package service_test

import (
	"context"
	"log/slog"
	"os"

	"eventsv2/eventqueue"
	"eventsv2/service"
)

// charge logs with its context.
func charge(ctx context.Context, run *eventqueue.Run) error {
	slog.InfoContext(ctx, "card found", "attempt", run.Attempt)
	return nil
}

// What handlers log with their contexts is on the pages of their events, and goes to the standard error as before.
func ExampleAttachLog() {
	slog.SetDefault(slog.New(service.AttachLog(slog.NewJSONHandler(os.Stderr, nil))))
	_ = eventqueue.HandlerFunc(charge)
}
