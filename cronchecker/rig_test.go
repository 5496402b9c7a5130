package cronchecker

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// rig is a database of its own with definitions, and a checker on it.
type rig struct {
	*testing.T
	ctx         context.Context
	pool        *pgxpool.Pool
	notifier    *memnotify.Notifier
	definitions *Definitions
	checker     *Checker
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, ctx: testenv.Context(t), pool: testenv.Pool(t), notifier: memnotify.New(memnotify.Config{})}
	r.definitions = NewDefinitions(r.pool)
	r.checker = r.newChecker(r.store())
	return r
}

// store is one process's: with a queue of its own.
func (r *rig) store(middleware ...eventqueue.EmitMiddleware) *Postgres {
	r.Helper()
	queue, err := eventqueue.New(pgstore.New(r.pool), r.notifier, eventqueue.QueueConfig{Logger: testenv.Logger(r.T), EmitMiddleware: middleware})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := queue.Close(context.Background()); err != nil {
			r.Error(err)
		}
	})
	return NewPostgres(r.pool, queue)
}

func (r *rig) newChecker(store Store) *Checker {
	r.Helper()
	return newChecker(r.T, store, Config{Logger: testenv.Logger(r.T)})
}

// add makes a definition that started a while ago.
func (r *rig) add(canvas eventqueue.CanvasID, name, schedule string, missed Missed, ago time.Duration) Definition {
	r.Helper()
	d, err := r.definitions.Add(r.ctx, NewDefinition{Canvas: canvas, Name: name, Schedule: schedule, Missed: missed}, false)
	if err != nil {
		r.Fatal(err)
	}
	return r.backdate(d, ago)
}

func (r *rig) backdate(d Definition, ago time.Duration) Definition {
	r.Helper()
	const backdateSQL = `UPDATE cron_definitions SET starts_at = clock_timestamp() - $2::bigint * interval '1 microsecond' WHERE id = $1 RETURNING starts_at`
	if err := r.pool.QueryRow(r.ctx, backdateSQL, int64(d.ID), ago.Microseconds()).Scan(&d.StartsAt); err != nil {
		r.Fatal(err)
	}
	return d
}

func (r *rig) exec(sql string) {
	r.Helper()
	if _, err := r.pool.Exec(r.ctx, sql); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) check() Result {
	r.Helper()
	result, err := r.checker.Check(r.ctx)
	if err != nil {
		r.Fatal(err)
	}
	return result
}

// emission is an event with its record.
type emission struct {
	Cron   int64
	Slot   time.Time
	Canvas [16]byte
	Name   string
	Value  []byte
}

// emissions returns the emitted events, by definition and slot. It fails the test
// if an event has no record, or a record no event (I10).
func (r *rig) emissions() []emission {
	r.Helper()
	const emissionsSQL = `
SELECT r.cron_id, r.slot, e.canvas_id, e.name, e.value::bytea
FROM events_v2 e
FULL JOIN cron_records r ON r.event_id = e.id AND e.module = 'CRON' AND e.modifier = '_'
ORDER BY r.cron_id, r.slot`
	rows, err := r.pool.Query(r.ctx, emissionsSQL)
	if err != nil {
		r.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[emission])
	if err != nil {
		r.Fatalf("an event without a record, or the reverse: %v", err)
	}
	for _, e := range list {
		var value slotValue
		if err := json.Unmarshal(e.Value, &value); err != nil {
			r.Fatal(err)
		}
		if value.CronID != CronID(e.Cron) || value.Slot != e.Slot.UTC().Format(time.RFC3339) {
			r.Errorf("the event of slot %s of %d says %s", e.Slot, e.Cron, e.Value)
		}
	}
	return list
}

// wantSlots checks that exactly these slots of the only definition are emitted.
func (r *rig) wantSlots(want ...time.Time) {
	r.Helper()
	got := r.emissions()
	if len(got) != len(want) {
		r.Fatalf("%d events: %v\nwant %v", len(got), got, want)
	}
	for i := range got {
		if !got[i].Slot.Equal(want[i]) {
			r.Errorf("slot %d is %s, want %s", i, got[i].Slot, want[i])
		}
	}
}
