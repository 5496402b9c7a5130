package pgstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// Rows as programs of version 25 have written them: of three events with an ordering key
// the first may run; of two events of a canvas with a limit of one the first may run; one
// event with a delay waits to join its groups; and a unique key holds after the end of its
// event.
const rowsOfVersion25SQL = `
INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, notified_at, delay_until, line, ordering_key)
SELECT id, canvas, 'WORKER', 'greet', '_', '1', now(), now() - late, line, ordering_key
FROM (VALUES (1, $1::uuid, interval '1 m', 1, 'k'), (2, $1, '1 m', 1, 'k'), (3, $1, '1 m', 1, 'k'),
    (4, $2::uuid, '1 m', 0, ''), (5, $2, '1 m', 0, ''), (6, $1, '-1 h', 3, 'k')) AS event (id, canvas, late, line, ordering_key);
INSERT INTO event_lines (event_id, stage, canvas_id, line)
SELECT id, 1, canvas_id, events_v2_line(1, '', '', ordering_key) FROM events_v2 WHERE line = 1;
INSERT INTO running_limits (canvas_id, line, max_running) VALUES ($2, 'canvas', 1);
SELECT events_v2_turns('{}', '{}', '{1,2,3,4,5}', NULL);
INSERT INTO unique_keys (canvas_id, key, event_id) VALUES ($1, 'u', 7);
INSERT INTO unique_ends (event_id, unique_seconds, expires_at) VALUES (7, 3600, now() + interval '1 h');
SELECT setval('events_id_seq', 100)`

// TestADatabaseOfVersion25GoesOn (I15): migration 26 renames tables, columns and functions
// that hold rows.
func TestADatabaseOfVersion25GoesOn(t *testing.T) {
	t.Parallel()
	ctx, databaseURL := testenv.Context(t), testenv.DatabaseURL(t)
	if _, err := migrations.Down(ctx, databaseURL, int(migrations.Latest()-25)); err != nil {
		t.Fatal(err)
	}
	before, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Exec(ctx, rowsOfVersion25SQL, pgx.QueryExecModeSimpleProtocol, canvas.String(), another.String()); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(ctx, databaseURL); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := &rig{t, pool, pgstore.New(pool)}

	// The groups go on where they were.
	for id, next := range map[eventqueue.EventID]eventqueue.EventID{1: 2, 4: 5} {
		if f := r.look(next)[next]; f.Facts.Claimed {
			t.Errorf("event %s was claimed beside event %s", next, id)
		}
		if advanced := r.completeInGroup(id); len(advanced) != 1 || advanced[0].ID != next {
			t.Errorf("after event %s the group advanced to %v, want event %s", id, advanced, next)
		}
	}
	limits, err := r.store.ConcurrencyLimits(ctx, another)
	if want := []control.ConcurrencyLimit{{Canvas: another, Max: 1}}; err != nil || !slices.Equal(limits, want) {
		t.Errorf("the limits are %+v, %v, want %+v", limits, err, want)
	}
	// The event with a delay joins its group behind event 3.
	r.exec(`UPDATE events_v2 SET delay_until = now() WHERE id = 6`)
	if advanced, err := r.store.Advance(ctx, nil, []eventqueue.EventID{6}); err != nil || len(advanced) > 0 {
		t.Errorf("event 6 joined and %v advanced, %v", advanced, err)
	}
	if got := r.ids(`SELECT event_id FROM event_groups WHERE canvas_id = $1 ORDER BY admitted DESC, event_id`, canvas); !slices.Equal(got, []eventqueue.EventID{2, 3, 6}) {
		t.Errorf("in the group are %v, want 2, which may run, 3 and 6", got)
	}
	// The key is refused until it has expired.
	if ids := r.insert(once("u", time.Hour)); ids[0] != 7 {
		t.Errorf("event %s was inserted beside event 7, whose key holds", ids[0])
	}
	r.exec(`UPDATE unique_expiries SET expires_at = now()`)
	fresh := r.insert(once("u", time.Hour))[0]
	if fresh == 7 {
		t.Error("the key holds although it has expired")
	}
	r.runToEnd(fresh, machine.ExecutesToCompletion)
	if n := one[int](r, `SELECT count(*) FROM unique_expiries WHERE event_id = $1`, fresh); n != 1 {
		t.Errorf("%d rows say when the key of event %s expires, want 1", n, fresh)
	}
}
