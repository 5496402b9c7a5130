package pgstore_test

import (
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// A statement that decides, or guesses, which events may run, in a database of its own.
type mayRunStatement struct {
	name string
	ask  func(t *testing.T, store *pgstore.Store, ids []eventqueue.EventID) []eventqueue.EventID
}

var mayRunStatements = []mayRunStatement{
	{"the claim", func(t *testing.T, store *pgstore.Store, ids []eventqueue.EventID) (may []eventqueue.EventID) {
		found, err := store.Claim(testenv.Context(t), ids, mayRunHandlers(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Facts.Claimed {
				may = append(may, f.Event.ID)
			}
		}
		return may
	}},
	{"what a busy worker looks for", func(t *testing.T, store *pgstore.Store, _ []eventqueue.EventID) (may []eventqueue.EventID) {
		events, _, err := store.Runnable(testenv.Context(t), eventqueue.Scope{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			may = append(may, e.ID)
		}
		return may
	}},
	{"the sweep of the relay", func(t *testing.T, store *pgstore.Store, _ []eventqueue.EventID) []eventqueue.EventID {
		swept, err := store.Sweep(testenv.Context(t), 0, 1000, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return eventIDs(swept.Lost)
	}},
	{"the round of the relay", func(t *testing.T, store *pgstore.Store, _ []eventqueue.EventID) []eventqueue.EventID {
		lost, _, err := store.TakeRound(testenv.Context(t), maintenance.RoundPlace{}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return eventIDs(lost)
	}},
	{"what an operator is shown", func(t *testing.T, store *pgstore.Store, _ []eventqueue.EventID) (may []eventqueue.EventID) {
		events, _, err := inspect.New(store.Pool()).List(testenv.Context(t), inspect.Filter{}, "", false, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.State == inspect.Waiting || e.State == inspect.Expired {
				may = append(may, e.ID)
			}
		}
		return may
	}},
	{"what an operator is warned of", func(t *testing.T, store *pgstore.Store, _ []eventqueue.EventID) (may []eventqueue.EventID) {
		reader := inspect.New(store.Pool())
		stuck, err := reader.Stuck(testenv.Context(t), inspect.Filter{}, inspect.StuckAfter{Unclaimed: time.Minute, Attempts: 100}, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range stuck {
			may = append(may, e.ID)
		}
		return may
	}},
}

func eventIDs(notifications []eventqueue.Notification) (ids []eventqueue.EventID) {
	for _, n := range notifications {
		ids = append(ids, n.Event)
	}
	return ids
}

func mayRunHandlers() (known eventqueue.HandlerSet) {
	for _, name := range []string{"free", "paused", "blocked", "billing.send", "slow"} {
		for _, modifier := range []string{"_", "held"} {
			known.Everywhere = append(known.Everywhere, eventqueue.HandlerKey{Module: "WORKER", Name: name, Modifier: modifier})
		}
	}
	return known
}

// TestStatementsAgreeOnRunnableEvents has an event for each combination of a rule, also of a modifier, of a prefix
// and one that is being lifted at a rate, a delay, a
// lock and a place in an ordering group, all notified long ago, and asks every statement
// that has an opinion (I4, I6, I7). A lock is valid for two minutes by the settings of the
// database, which are more than the minute that each statement is given.
func TestStatementsAgreeOnRunnableEvents(t *testing.T) {
	t.Parallel()
	for _, statement := range mayRunStatements {
		t.Run(statement.name, func(t *testing.T) {
			t.Parallel()
			store := pgstore.New(testenv.Pool(t))
			ids, want := insertMayRun(t, store)
			may := statement.ask(t, store, ids)
			slices.Sort(may)
			slices.Sort(want)
			if !slices.Equal(may, want) {
				t.Errorf("%v may run by this statement, want %v", may, want)
			}
		})
	}
}

// insertMayRun inserts the events of TestStatementsAgreeOnRunnableEvents, of which those of want may run.
func insertMayRun(t *testing.T, store *pgstore.Store) (ids, want []eventqueue.EventID) {
	t.Helper()
	ctx := testenv.Context(t)
	rows, err := store.Pool().Query(ctx, `INSERT INTO events_v2
		(canvas_id, module, name, modifier, value, attempts, enqueued_at, notified_at, delay_until, locked_at, group_state, ordering_key)
		SELECT $1, 'WORKER', name, modifier, '1', 1, now() - interval '2 h', now() - interval '2 h', now() + due, now() - locked, group_state, repeat('a', group_state)
		FROM (VALUES ('free', '_'), ('free', 'held'), ('paused', '_'), ('blocked', '_'), ('billing.send', '_'), ('slow', '_'), ('slow', '_')) AS handler (name, modifier),
			unnest(ARRAY['-1 h', '1 h']::interval[]) AS due,
			unnest(ARRAY[NULL, '10 s', '90 s', '80 min']::interval[]) AS locked,
			unnest(ARRAY[0, 1]) AS group_state
		WHERE group_state = 0 OR locked IS NULL -- what waits has never a lock
		RETURNING id, name, modifier, delay_until < now() AND group_state = 0
			AND coalesce(locked_at < now() - interval '2 min', true)`, [16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	var released eventqueue.EventID // of slow, the first
	for rows.Next() {
		var id eventqueue.EventID
		var name, modifier string
		var may bool
		if err := rows.Scan(&id, &name, &modifier, &may); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		switch {
		case may && name == "free" && modifier == "_":
			want = append(want, id)
		case may && name == "slow" && released == 0:
			want, released = append(want, id), id
		}
	}
	if err := rows.Err(); err != nil || len(ids) != 70 || len(want) != 3 {
		t.Fatalf("%d events of which %d may run, %v", len(ids), len(want), err)
	}
	if _, err := store.Pool().Exec(ctx, `INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, modifier, prefix, rate, released_to, released_at)
		VALUES ('pause', $1, 'WORKER', 'paused', '', false, NULL, NULL, NULL), ('block', $1, 'WORKER', 'blocked', '', false, NULL, NULL, NULL),
			('pause', $1, 'WORKER', 'free', 'held', false, NULL, NULL, NULL), ('block', $1, 'WORKER', 'billing.', '', true, NULL, NULL, NULL),
			('pause', $1, 'WORKER', 'slow', '', false, 1, $2, now())`, [16]byte{1}, released); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_groups (event_id, stage, canvas_id, group_key, admitted)
		SELECT id, 1, canvas_id, 'key a', group_state = 0 FROM events_v2
		WHERE group_state = 1 OR id = (SELECT min(id) FROM events_v2 WHERE locked_at > now() - interval '1 min')`); err != nil { // one that runs has the place
		t.Fatal(err)
	}
	if _, err := store.Pool().Exec(ctx, `INSERT INTO events_v2_settings (lock_timeout) VALUES ('2 min')`); err != nil {
		t.Fatal(err)
	}
	return ids, want
}
