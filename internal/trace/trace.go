// Package trace carries W3C trace contexts between contexts and notifications.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// Parent is the W3C trace context of ctx, or empty.
func Parent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// With is the reverse: the context of a run continues the trace of
// the emitter, when the notification still knew it.
func With(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}
