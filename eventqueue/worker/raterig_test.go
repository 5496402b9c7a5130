package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// clockRig is a rig whose database has a clock that stands still until it is set.
type clockRig struct {
	*rig.Rig
	now    time.Time
	limits *operate.RateLimits
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
	config.ConnConfig.RuntimeParams["eventsv2.lock_wait"] = "1min" // on a machine under load, counters are locked for longer than a moment
	config.MaxConns = 12
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := &clockRig{Rig: rig.NewOn(t, pool)}
	r.Exec(fixedClockSQL)
	if r.limits, err = operate.NewRateLimits(r.Store, r.Queue); err != nil {
		t.Fatal(err)
	}
	r.setClock(time.Date(2025, 3, 1, 12, 0, 1, 0, time.UTC))
	return r
}

func (r *clockRig) setClock(now time.Time) {
	r.T.Helper()
	r.now = now
	r.Exec(`SELECT setval('fixed_clock', $1)`, now.UnixMicro())
}

// nextMinute moves the clock to where all events of the next minute are due, and publishes
// notifications for them. No run may be under way.
func (r *clockRig) nextMinute() (notified int) {
	r.T.Helper()
	r.awaitWritten()
	r.setClock(r.now.Truncate(time.Minute).Add(time.Minute + 30*time.Second))
	return r.notifyDue()
}

// awaitWritten waits until no event is claimed.
func (r *clockRig) awaitWritten() {
	r.T.Helper()
	testenv.Eventually(r.T, "all that was claimed is written", func() bool {
		return rig.One[bool](r.Rig, `SELECT NOT EXISTS (SELECT FROM events_v2 WHERE locked_at IS NOT NULL)`)
	})
}

func (r *clockRig) notifyDue() (notified int) {
	r.T.Helper()
	rows, err := r.Pool.Query(testenv.Context(r.T), `SELECT id, canvas_id FROM events_v2 WHERE delay_until <= clock_timestamp() AND locked_at IS NULL`)
	if err != nil {
		r.T.Fatal(err)
	}
	var due []eventqueue.Notification
	for rows.Next() {
		var n eventqueue.Notification
		if err := rows.Scan(&n.Event, (*[16]byte)(&n.Canvas)); err != nil {
			r.T.Fatal(err)
		}
		due = append(due, n)
	}
	if err := errors.Join(rows.Err(), r.Notifier.Publish(testenv.Context(r.T), due)); err != nil {
		r.T.Fatal(err)
	}
	return len(due)
}

func (r *clockRig) limit(l operate.RateLimit) (notified int) {
	r.T.Helper()
	l.Canvas = rig.Canvas
	notified, err := r.limits.Set(testenv.Context(r.T), l)
	if err != nil {
		r.T.Fatal(err)
	}
	return notified
}

func handlerScope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name}
}

// awaitOutcomes waits until so many runs have ended or were put off, in all, and that is in their rows, which it is not yet when it
// is observed: an event that is released meanwhile becomes due when it is written, and is left to the relay, which the rig has not.
func (r *clockRig) awaitOutcomes(n int) {
	r.T.Helper()
	ctx := testenv.Context(r.T)
	for {
		r.Outcomes.Mu.Lock()
		changed := r.Outcomes.Changed
		r.Outcomes.Mu.Unlock()
		if got := r.Outcomes.Count(machine.ExecutesToCompletion) + r.Outcomes.Count(machine.OverLimit); got >= n {
			r.awaitWritten()
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.T.Fatalf("waited for %d ends: %v", n, r.Outcomes.Summary())
		}
	}
}

func (r *clockRig) emitTo(name string, n int) {
	r.T.Helper()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = r.Event(`1`)
		events[i].Name = name
	}
	r.Emit(events...)
}

func done(context.Context, *eventqueue.Run) error { return nil }
