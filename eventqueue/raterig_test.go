package eventqueue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// clockRig is a rig whose database has a clock that stands still until it is set.
type clockRig struct {
	*rig
	now    time.Time
	limits *eventqueue.RateLimits
}

const fixedClockSQL = `
CREATE SEQUENCE fixed_clock MINVALUE 0;
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz 'epoch' + (SELECT last_value FROM public.fixed_clock) * interval '1 microsecond'
$$`

func newClockRig(t *testing.T) *clockRig {
	t.Helper()
	config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = "public, pg_catalog"
	config.MaxConns = 12
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := &clockRig{rig: newRigOn(t, pool)}
	r.exec(fixedClockSQL)
	if r.limits, err = eventqueue.NewRateLimits(r.store, r.queue); err != nil {
		t.Fatal(err)
	}
	r.setClock(time.Date(2025, 3, 1, 12, 0, 1, 0, time.UTC))
	return r
}

func (r *clockRig) setClock(now time.Time) {
	r.t.Helper()
	r.now = now
	r.exec(`SELECT setval('fixed_clock', $1)`, now.UnixMicro())
}

// nextMinute goes to where all have come whose turn it is in the next minute, and rings
// for what is due.
func (r *clockRig) nextMinute() (rung int) {
	r.t.Helper()
	r.setClock(r.now.Truncate(time.Minute).Add(time.Minute + 30*time.Second))
	return r.ringDue()
}

func (r *clockRig) ringDue() (rung int) {
	r.t.Helper()
	rows, err := r.pool.Query(testenv.Context(r.t), `SELECT id, canvas_id FROM events_v2 WHERE delay_until <= clock_timestamp() AND locked_at IS NULL`)
	if err != nil {
		r.t.Fatal(err)
	}
	var bells []eventqueue.Notification
	for rows.Next() {
		var n eventqueue.Notification
		if err := rows.Scan(&n.Event, (*[16]byte)(&n.Canvas)); err != nil {
			r.t.Fatal(err)
		}
		bells = append(bells, n)
	}
	if err := errors.Join(rows.Err(), r.notifier.Publish(testenv.Context(r.t), bells)); err != nil {
		r.t.Fatal(err)
	}
	return len(bells)
}

func (r *clockRig) limit(l eventqueue.RateLimit) (notified int) {
	r.t.Helper()
	l.Canvas = canvas
	notified, err := r.limits.Set(testenv.Context(r.t), l)
	if err != nil {
		r.t.Fatal(err)
	}
	return notified
}

func handlerScope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: key.Name}
}

// awaitEnds waits until so many runs have ended or were put off, in all.
func (r *clockRig) awaitEnds(n int) {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	for {
		r.outcomes.mu.Lock()
		changed := r.outcomes.changed
		r.outcomes.mu.Unlock()
		if got := r.outcomes.count(machine.ExecutesToCompletion) + r.outcomes.count(machine.OverLimit); got >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.t.Fatalf("waited for %d ends: %v", n, r.outcomes.summary())
		}
	}
}

func (r *clockRig) emitTo(name string, n int) {
	r.t.Helper()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = r.event(`1`)
		events[i].Name = name
	}
	r.emit(events...)
}

func done(context.Context, *eventqueue.Run) error { return nil }
