package otelevents_test

import (
	"context"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/worker"
	"eventsv2/otelevents"
)

// BenchmarkMetricsOfARun measures a worker's metrics of one event.
func BenchmarkMetricsOfARun(b *testing.B) {
	metrics, err := otelevents.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))
	if err != nil {
		b.Fatal(err)
	}
	scope := eventqueue.Scope{Canvas: eventqueue.CanvasID{7}, Module: "M", Name: "a"}
	claimed, completed := worker.Outcome{Label: machine.Claimed, To: machine.Process}, worker.Outcome{Label: machine.ExecutesToCompletion, To: machine.Delete, Attempt: 1}
	run := &minutes.CountedRun{Scope: scope, End: minutes.RunCompleted, Waited: time.Second, Took: time.Millisecond}
	for b.Loop() {
		metrics.Outcome(claimed)
		metrics.Outcome(completed)
		metrics.Ran(run)
	}
}

// BenchmarkSpanOfARun measures a span of one run, of a trace that is recorded and of one that is not.
func BenchmarkSpanOfARun(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{"recorded": sdktrace.AlwaysSample(), "not recorded": sdktrace.NeverSample()} {
		b.Run(name, func(b *testing.B) {
			traces := otelevents.NewTraces(sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler)))
			handler := traces.Middleware(eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil }))
			run := &eventqueue.Run{}
			for b.Loop() {
				if err := handler.Handle(b.Context(), run); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
