package otelevents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"eventsv2/eventqueue/inspect"
)

const (
	// pendingHolds is how long an answer holds: who collects more often sends the database no more statements.
	pendingHolds = 10 * time.Second
	// pendingTakes bounds the statement, so that a database that hangs costs a scrape these numbers only.
	pendingTakes = 3 * time.Second
)

// PendingReader reads what is pending; an *inspect.Reader is one.
type PendingReader interface {
	HandlersPending(ctx context.Context) ([]inspect.HandlerPending, error)
	// Runnable counts what could run now, up to a number.
	Runnable(ctx context.Context, most int) (int, error)
	// OldestPending returns for how long the oldest due notification has been waiting to be published.
	OldestPending(ctx context.Context) (time.Duration, error)
	// QueueUsage is how full the server's queue of notifications is, from 0 to 1, and from where on wake-ups are left out.
	QueueUsage(ctx context.Context) (usage, limit float64, err error)
}

// pending is the last answer of a reader.
type pending struct {
	reader PendingReader
	mu     sync.Mutex
	last   waiting
	err    error
	until  time.Time
}

// waiting is the answer of a reader.
type waiting struct {
	handlers []inspect.HandlerPending
	runnable int
	oldest   time.Duration // notification
	usage    float64       // of the server's queue of notifications
	limit    float64       // from which on wake-ups are left out
}

func (p *pending) read(ctx context.Context) (waiting, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.until) {
		return p.last, p.err
	}
	ctx, cancel := context.WithTimeout(ctx, pendingTakes)
	defer cancel()
	p.last, p.err = p.ask(ctx)
	p.until = time.Now().Add(pendingHolds)
	return p.last, p.err
}

func (p *pending) ask(ctx context.Context) (w waiting, err error) {
	if w.handlers, err = p.reader.HandlersPending(ctx); err != nil {
		return w, err
	}
	if w.runnable, err = p.reader.Runnable(ctx, inspect.MaxRunnable); err != nil {
		return w, err
	}
	if w.oldest, err = p.reader.OldestPending(ctx); err != nil {
		return w, err
	}
	w.usage, w.limit, err = p.reader.QueueUsage(ctx)
	return w, err
}

// ObservePending has what is pending read at each collection, with four statements in ten seconds at most,
// until stop is called. All programs of a database would report the same, so one kind of program does it: cron.
func (m *Metrics) ObservePending(reader PendingReader) (stop func() error, err error) {
	events, err1 := m.meter.Int64ObservableGauge("eventsv2.events.pending", metric.WithUnit("{event}"), metric.WithDescription("Events that have not ended, as they were counted within the last three minutes."))
	oldest, err2 := m.meter.Float64ObservableGauge("eventsv2.events.oldest_due", metric.WithUnit("s"), metric.WithDescription("For how long the oldest due event had been due that no worker runs."))
	could, err3 := m.meter.Int64ObservableGauge("eventsv2.events.runnable", metric.WithUnit("{event}"), metric.WithDescription("Events that run or could run now, up to 100,000: for autoscalers."))
	lag, err4 := m.meter.Float64ObservableGauge("eventsv2.notifications.oldest_pending", metric.WithUnit("s"), metric.WithDescription("For how long the oldest due notification has been waiting for a relay to publish it."))
	usage, err5 := m.meter.Float64ObservableGauge("eventsv2.postgres.notify_queue", metric.WithUnit("1"), metric.WithDescription("How full the Postgres server's queue of notifications is."))
	limit, err6 := m.meter.Float64ObservableGauge("eventsv2.postgres.notify_limit", metric.WithUnit("1"), metric.WithDescription("How full that queue may be before wake-ups are left out, and events are found by polling."))
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, fmt.Errorf("otelevents.ObservePending: %w", err)
	}
	p := &pending{reader: reader}
	registration, err := m.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		waits, err := p.read(ctx)
		if err != nil {
			return fmt.Errorf("read what is pending: %w", err)
		}
		o.ObserveInt64(could, int64(waits.runnable))
		o.ObserveFloat64(lag, waits.oldest.Seconds())
		o.ObserveFloat64(usage, waits.usage)
		o.ObserveFloat64(limit, waits.limit)
		sums := map[*handler]*inspect.HandlerPending{}
		for _, h := range waits.handlers {
			of := m.handlers.of(h.Module, h.Name)
			if sums[of] == nil {
				sums[of] = &inspect.HandlerPending{}
			}
			sums[of].Pending += h.Pending
			sums[of].OldestDue = max(sums[of].OldestDue, h.OldestDue)
		}
		for of, sum := range sums {
			o.ObserveInt64(events, sum.Pending, of.itself)
			o.ObserveFloat64(oldest, sum.OldestDue.Seconds(), of.itself)
		}
		return nil
	}, events, oldest, could, lag, usage, limit)
	if err != nil {
		return nil, fmt.Errorf("otelevents.ObservePending: %w", err)
	}
	return registration.Unregister, nil
}
