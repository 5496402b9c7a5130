package otelevents

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"eventsv2/eventqueue"
)

// Traces records runs as spans. It is safe for concurrent use.
type Traces struct{ tracer trace.Tracer }

// NewTraces makes the tracer of a provider.
func NewTraces(provider trace.TracerProvider) *Traces {
	return &Traces{tracer: provider.Tracer(Scope)}
}

// Middleware returns a handler that runs another one within a span, whose parent is the trace context that the
// event has from its emitter: it is for the Middleware of a worker.Config. Events that the handler emits, and HTTP
// requests that it makes with its context, belong to the span. A span has no value and no text of an error, which may
// hold secrets.
func (t *Traces) Middleware(next eventqueue.Handler) eventqueue.Handler {
	return tracedHandler{t.tracer, next}
}

type tracedHandler struct {
	tracer trace.Tracer
	next   eventqueue.Handler
}

// Handle implements eventqueue.Handler.
func (h tracedHandler) Handle(ctx context.Context, run *eventqueue.Run) error {
	handler := run.Module + "/" + run.Name
	ctx, span := h.tracer.Start(ctx, "process "+handler, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "eventsv2"),
		attribute.String("messaging.operation.name", "process"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", handler),
		attribute.String("messaging.message.id", run.ID.String()),
		attribute.Int("eventsv2.attempt", int(run.Attempt)),
	))
	failure := "panic"
	defer func() {
		if failure != "" {
			span.SetStatus(codes.Error, "")
			span.SetAttributes(attribute.String("error.type", failure))
		}
		span.End()
	}()
	err := h.next.Handle(ctx, run)
	failure = typeOf(err)
	return err
}

// typeOf names what is wrong without its text; a snooze is nothing wrong.
func typeOf(err error) string {
	if _, snoozed := eventqueue.SnoozeOf(err); err == nil || snoozed && !eventqueue.IsPermanent(err) {
		return ""
	}
	return fmt.Sprintf("%T", err)
}
