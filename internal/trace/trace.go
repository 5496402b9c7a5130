// Package trace carries W3C trace contexts between contexts, events and notifications.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// Parent returns the W3C trace context of ctx; empty without one.
func Parent(ctx context.Context) string {
	if !oteltrace.SpanContextFromContext(ctx).IsValid() {
		return "" // as for most emits, which need no map then
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// With returns a context with a W3C trace context, so that a run continues the trace of the
// emitter. Without a trace context it returns ctx.
func With(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}
