package otelevents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"eventsv2/eventqueue"
	"eventsv2/otelevents"
)

const secret = "canary-in-a-cage"

// TestRunHasASpan: its parent comes from the context; it has the outcome, and no text of the event.
func TestRunHasASpan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handle eventqueue.HandlerFunc
		status codes.Code
	}{
		"completed": {func(context.Context, *eventqueue.Run) error { return nil }, codes.Unset},
		"snoozed":   {func(context.Context, *eventqueue.Run) error { return eventqueue.Snooze(1) }, codes.Unset},
		"failed":    {func(context.Context, *eventqueue.Run) error { return errors.New(secret) }, codes.Error},
		"permanent": {func(context.Context, *eventqueue.Run) error { return eventqueue.Permanent(errors.New(secret)) }, codes.Error},
		"panicked":  {func(context.Context, *eventqueue.Run) error { panic(secret) }, codes.Error},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spans := tracetest.NewInMemoryExporter()
			traces := otelevents.NewTraces(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
			parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
			var inside trace.SpanContext
			handler := traces.Middleware(eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
				inside = trace.SpanContextFromContext(ctx)
				return c.handle(ctx, run)
			}))
			run := &eventqueue.Run{Attempt: 3}
			run.Event = eventqueue.Event{ID: 42, Module: "M", Name: "a", Value: []byte(secret)}
			func() {
				defer func() { _ = recover() }() // which the worker does
				_ = handler.Handle(trace.ContextWithRemoteSpanContext(t.Context(), parent), run)
			}()
			list := spans.GetSpans()
			if len(list) != 1 {
				t.Fatalf("%d spans", len(list))
			}
			span := list[0]
			if span.Name != "process M/a" || span.SpanKind != trace.SpanKindConsumer || span.Status.Code != c.status {
				t.Errorf("the span is %q, %s, %v", span.Name, span.SpanKind, span.Status)
			}
			if span.Parent.SpanID() != parent.SpanID() || span.SpanContext.TraceID() != parent.TraceID() {
				t.Errorf("its parent is %v", span.Parent)
			}
			if inside.SpanID() != span.SpanContext.SpanID() {
				t.Error("the handler is not within its span")
			}
			text := fmt.Sprintf("%+v", span)
			if strings.Contains(text, secret) {
				t.Errorf("a secret is in %s", text)
			}
			for _, attribute := range []string{"messaging.message.id", "messaging.destination.name", "eventsv2.attempt"} {
				if !strings.Contains(text, attribute) {
					t.Errorf("%s is missing", attribute)
				}
			}
		})
	}
}
