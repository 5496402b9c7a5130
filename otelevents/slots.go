package otelevents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"eventsv2/eventqueue/worker"
)

// ObserveSlots has the slots of a worker read at each collection, until stop is called. While slots
// reports false there is no worker, and nothing is observed.
func (m *Metrics) ObserveSlots(slots func() (worker.Slots, bool)) (stop func() error, err error) {
	busy, err1 := m.meter.Int64ObservableGauge("eventsv2.worker.busy", metric.WithUnit("{slot}"), metric.WithDescription("Slots of the worker that events hold."))
	most, err2 := m.meter.Int64ObservableGauge("eventsv2.worker.slots", metric.WithUnit("{slot}"), metric.WithDescription("How many slots the worker has."))
	hung, err3 := m.meter.Int64ObservableGauge("eventsv2.worker.hung", metric.WithUnit("{handler}"), metric.WithDescription("Handlers that have not returned though their contexts have ended."))
	oldest, err4 := m.meter.Float64ObservableGauge("eventsv2.worker.oldest_run", metric.WithUnit("s"), metric.WithDescription("For how long the slot has been held that has been held for longest."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("otelevents.ObserveSlots: %w", err)
	}
	registration, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now, works := slots()
		if !works {
			return nil
		}
		o.ObserveInt64(busy, int64(now.Busy))
		o.ObserveInt64(most, int64(now.Of))
		o.ObserveInt64(hung, int64(now.Hung))
		var since time.Duration
		if !now.OldestSince.IsZero() {
			since = time.Since(now.OldestSince)
		}
		o.ObserveFloat64(oldest, since.Seconds())
		return nil
	}, busy, most, hung, oldest)
	if err != nil {
		return nil, fmt.Errorf("otelevents.ObserveSlots: %w", err)
	}
	return registration.Unregister, nil
}
