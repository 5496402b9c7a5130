package otelevents

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ObservePool has the connections of a pool, and the waits for them, read at each collection, until stop
// is called. It sends the database nothing.
func (m *Metrics) ObservePool(pool *pgxpool.Pool) (stop func() error, err error) {
	connections, err1 := m.meter.Int64ObservableGauge("eventsv2.pool.connections", metric.WithUnit("{connection}"), metric.WithDescription("Connections of the pool, by state."))
	most, err2 := m.meter.Int64ObservableGauge("eventsv2.pool.max", metric.WithUnit("{connection}"), metric.WithDescription("How many connections the pool may have."))
	waits, err3 := m.meter.Int64ObservableCounter("eventsv2.pool.waits", metric.WithUnit("{wait}"), metric.WithDescription("Statements that had to wait for a connection."))
	waited, err4 := m.meter.Float64ObservableCounter("eventsv2.pool.wait.time", metric.WithUnit("s"), metric.WithDescription("How long they have waited in all."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("otelevents.ObservePool: %w", err)
	}
	used, idle := with(attribute.String("state", "used")), with(attribute.String("state", "idle"))
	registration, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		stat := pool.Stat()
		o.ObserveInt64(connections, int64(stat.AcquiredConns()), used)
		o.ObserveInt64(connections, int64(stat.IdleConns()), idle)
		o.ObserveInt64(most, int64(stat.MaxConns()))
		o.ObserveInt64(waits, stat.EmptyAcquireCount())
		o.ObserveFloat64(waited, stat.EmptyAcquireWaitTime().Seconds())
		return nil
	}, connections, most, waits, waited)
	if err != nil {
		return nil, fmt.Errorf("otelevents.ObservePool: %w", err)
	}
	return registration.Unregister, nil
}
