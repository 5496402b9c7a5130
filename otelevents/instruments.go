package otelevents

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// Scope is the name of the instrumentation scope of all instruments.
const Scope = "eventsv2/otelevents"

// instruments are those that are counted when something happens. What is read at a collection is in
// pool.go and pending.go.
type instruments struct {
	emitted   metric.Int64Counter
	claimed   metric.Int64Counter
	takenOver metric.Int64Counter
	runs      metric.Int64Counter
	runTime   metric.Float64Histogram
	waitTime  metric.Float64Histogram
	requeued  metric.Int64Counter
	dropped   metric.Int64Counter
	locksLost metric.Int64Counter

	published     metric.Int64Counter
	publishFailed metric.Int64Counter
	publishTime   metric.Float64Histogram
	relayed       metric.Int64Counter

	renewals metric.Float64Histogram
	received metric.Int64Counter
	refused  metric.Int64Counter
}

// The bounds of the buckets, in seconds. A series of a histogram is one per bucket for Prometheus, so they are few.
var (
	durationBounds = []float64{0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 600}
	renewalBounds  = []float64{1, 5, 15, 30, 45, 60, 300}
	publishBounds  = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 2, 5}
)

func newInstruments(meter metric.Meter) (i instruments, err error) {
	var problems []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		problems = append(problems, err)
		return c
	}
	histogram := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		problems = append(problems, err)
		return h
	}
	i = instruments{
		emitted:   counter("eventsv2.events.emitted", "{event}", "New events that this program has emitted."),
		claimed:   counter("eventsv2.events.claimed", "{event}", "Events that the worker has claimed to run them."),
		takenOver: counter("eventsv2.events.taken_over", "{event}", "Claims that took over the expired lock of another claim."),
		runs:      counter("eventsv2.runs", "{run}", "Runs whose end was written, by that end."),
		runTime:   histogram("eventsv2.run.duration", "How long the handlers of these runs took.", durationBounds),
		waitTime:  histogram("eventsv2.wait.duration", "How long the events of these runs had been due when they were claimed.", durationBounds),
		requeued:  counter("eventsv2.notifications.requeued", "{notification}", "Notifications that the worker has given back, to try the event again later, by reason."),
		dropped:   counter("eventsv2.notifications.dropped", "{notification}", "Notifications that the worker has acknowledged without a run, by reason."),
		locksLost: counter("eventsv2.locks.lost", "{lock}", "Runs whose end was refused because another worker holds the event, or it has ended."),

		published:     counter("eventsv2.notifications.published", "{notification}", "Notifications that the notifier has accepted."),
		publishFailed: counter("eventsv2.notifications.failed", "{notification}", "Notifications that could not be published, and are pending."),
		publishTime:   histogram("eventsv2.publish.duration", "How long the requests took that publish notifications.", publishBounds),
		relayed:       counter("eventsv2.notifications.relayed", "{notification}", "Notifications that the relay has published, by what they were."),

		renewals: histogram("eventsv2.locks.renewal.age", "How long ago the lock that was renewed the longest ago had been renewed, at each renewal; at LOCK_TIMEOUT it expires.", renewalBounds),
		received: counter("eventsv2.webhooks.received", "{request}", "Requests to sources of webhooks, by what became of them."),
		refused:  counter("eventsv2.access.refused", "{request}", "Requests to the HTTP API and the dashboard, log-ins among them, that were refused with 401 or 403."),
	}
	return i, errors.Join(problems...)
}
