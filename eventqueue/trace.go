package eventqueue

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// traceparent is the W3C trace context of ctx, or empty.
func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// withTraceparent is the reverse: the context of a run continues the trace of
// the emitter, when the notification still knew it.
func withTraceparent(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}

// MaxTraceparentBytes is beyond any version of the W3C format, which has 55 bytes
// today.
const MaxTraceparentBytes = 128

// ValidTraceparent tells whether a notifier may carry s as a trace context:
// printable ASCII of a sane length. What it means is the tracer's business. One
// that a broker would refuse must not cost the notification, let alone its batch.
func ValidTraceparent(s string) bool {
	if s == "" || len(s) > MaxTraceparentBytes {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
