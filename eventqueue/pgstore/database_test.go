package pgstore_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// The tenants and the handler of most tests.
var (
	canvas   = eventqueue.CanvasID{0xca, 15: 1}
	another  = eventqueue.CanvasID{0xca, 15: 2}
	key      = eventqueue.HandlerKey{Module: "WORKER", Name: "greet", Modifier: "_"}
	handlers = eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{key}}
	scope    = eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: key.Name}
)

// lockTimeout is the workers' in these tests.
const lockTimeout = time.Minute

// rig is a store on a database of its own, whose clock tests move by putting a clock_timestamp
// of their own before the built-in one. A test on it fails soon when its rule is broken: it waits
// for one of two things, the right one and the wrong one, and never for a deadline.
type rig struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *pgstore.Store
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pool := testenv.Pool(t)
	return &rig{t, pool, pgstore.New(pool)}
}

// newRigWithClock is newRig with a database whose clock goes wrong by a time
// that setClock changes.
func newRigWithClock(t *testing.T, ahead time.Duration) *rig {
	t.Helper()
	config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = "public, pg_catalog"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := &rig{t, pool, pgstore.New(pool)}
	r.exec(`CREATE TABLE skew AS SELECT $1::interval AS ahead`, ahead)
	r.exec(`CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM public.skew'`)
	r.exec(`ALTER FUNCTION events_v2_emit_ending SET search_path = public, pg_catalog`)
	return r
}

func (r *rig) setClock(ahead time.Duration) {
	r.t.Helper()
	r.exec(`UPDATE skew SET ahead = $1`, ahead)
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(testenv.Context(r.t), sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// one returns the only value of a query.
func one[T any](r *rig, sql string, args ...any) T {
	r.t.Helper()
	var v T
	if err := r.pool.QueryRow(testenv.Context(r.t), sql, args...).Scan(&v); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// ids are those that a query returns.
func (r *rig) ids(sql string, args ...any) []eventqueue.EventID {
	r.t.Helper()
	rows, err := r.pool.Query(testenv.Context(r.t), sql, args...)
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return ids
}

// now is the database's time.
func (r *rig) now() time.Time { r.t.Helper(); return one[time.Time](r, `SELECT clock_timestamp()`) }

// waits reports whether a session of this database waits for a lock of another.
func (r *rig) waits(sessions int) bool {
	r.t.Helper()
	return one[int](r, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= sessions
}

func event() eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier,
		Value: json.RawMessage(`1`)}
}

// insert writes events and returns their ids.
func (r *rig) insert(events ...eventqueue.NewEvent) []eventqueue.EventID {
	r.t.Helper()
	rows, err := r.store.Insert(testenv.Context(r.t), nil, events, eventqueue.NotifyModeSelf)
	if err != nil {
		r.t.Fatal(err)
	}
	ids := make([]eventqueue.EventID, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return ids
}

// look asks for the claim of some events and returns what was found, by id.
func (r *rig) look(ids ...eventqueue.EventID) map[eventqueue.EventID]worker.ClaimResult {
	r.t.Helper()
	found, err := r.store.Claim(testenv.Context(r.t), ids, handlers, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	byID := map[eventqueue.EventID]worker.ClaimResult{}
	for _, f := range found {
		byID[f.Event.ID] = f
	}
	return byID
}

// claim claims an event that is free.
func (r *rig) claim(id eventqueue.EventID) worker.Claim {
	r.t.Helper()
	f := r.look(id)[id]
	if !f.Facts.Claimed {
		r.t.Fatalf("event %s could not be claimed: %+v", id, f.Facts)
	}
	return worker.Claim{Event: id, Attempt: f.Attempt, ID: f.ClaimID}
}

// expire lets the lock of an event, whose run has begun, be older than the lock timeout.
func (r *rig) expire(id eventqueue.EventID) {
	r.t.Helper()
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '61 s', begun = true WHERE id = $1`, id)
}

// complete writes an end and reports whether the claim still held.
func (r *rig) complete(c worker.Claim, label machine.Label, delay time.Duration, retain bool) bool {
	r.t.Helper()
	end := worker.Completion{Claim: c, Label: label, Delay: delay, LastError: "no luck"}
	written, err := r.store.Complete(testenv.Context(r.t), nil, []worker.Completion{end}, retain)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(written.Done) == 1
}

// row has the columns of events_v2 that tests read.
type row struct {
	Retries, Attempts int
	LockedAt          *time.Time
	DelayUntil        time.Time
	NotifiedAt        *time.Time
}

// row reads the row of an event; there is none after its end.
func (r *rig) row(id eventqueue.EventID) (got row, exists bool) {
	r.t.Helper()
	return r.rowIn(r.pool, id)
}

// rowIn is row in a transaction.
func (r *rig) rowIn(db eventqueue.DB, id eventqueue.EventID) (got row, exists bool) {
	r.t.Helper()
	rows, err := db.Query(testenv.Context(r.t),
		`SELECT retries, attempts, locked_at, delay_until, notified_at FROM events_v2 WHERE id = $1`, id)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	if exists = rows.Next(); exists {
		if err := rows.Scan(&got.Retries, &got.Attempts, &got.LockedAt, &got.DelayUntil, &got.NotifiedAt); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return got, exists
}

// mustRow reads the row of an event that has not ended.
func (r *rig) mustRow(id eventqueue.EventID) row {
	r.t.Helper()
	got, exists := r.row(id)
	if !exists {
		r.t.Fatalf("event %s is gone", id)
	}
	return got
}
