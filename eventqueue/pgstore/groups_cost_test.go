package pgstore_test

import (
	"strconv"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// groupWork is a call of the store for one event of each of some keys, and the rows that it
// read and wrote for that.
func (r *rig) groupWork(keys ...string) (buffers int) {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	before := r.buffers()
	for range 10 {
		for _, k := range keys {
			first, second := event(), event()
			first.OrderingKey, second.OrderingKey = k, k
			ids := r.insert(first, second)
			r.look(ids...)
			if _, err := r.store.Advance(ctx, nil, ids); err != nil {
				r.t.Fatal(err)
			}
			f := r.look(ids[0])[ids[0]]
			if !f.Facts.Claimed {
				continue // behind the others of a full key
			}
			for _, label := range []machine.Label{machine.Released, machine.ExecutesToCompletion} {
				end := worker.Completion{Claim: worker.Claim{Event: ids[0], Attempt: f.Attempt}, Grouped: true, Label: label}
				written, err := r.store.Complete(ctx, nil, []worker.Completion{end}, false)
				if err != nil || len(written.Done) != 1 || (label == machine.ExecutesToCompletion) != (len(written.Advanced) == 1) {
					r.t.Fatalf("%s: %+v, %v", label, written, err)
				}
				f = r.look(ids[0])[ids[0]]
			}
			r.completeInGroup(ids[1])
		}
	}
	return r.buffers() - before
}

// completeInGroup completes an event that has the turn of its line.
func (r *rig) completeInGroup(id eventqueue.EventID) []eventqueue.Event {
	r.t.Helper()
	end := worker.Completion{Claim: r.claim(id), Grouped: true, Label: machine.ExecutesToCompletion}
	written, err := r.store.Complete(testenv.Context(r.t), nil, []worker.Completion{end}, false)
	if err != nil || len(written.Done) != 1 {
		r.t.Fatalf("%+v, %v", written, err)
	}
	return written.Advanced
}

// buffers is how many pages of the tables of lines and events were touched.
func (r *rig) buffers() int {
	r.t.Helper()
	r.flush()
	return one[int](r, `SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))
		FROM pg_statio_user_tables WHERE relname IN ('events_v2', 'event_groups', 'concurrency_limits')`)
}

// TestGroupCostIsIndependentOfTheBacklog (I12) works often enough for plans to be kept,
// beside empty tables, and then has a hundred thousand events wait behind one key.
// What is done about the events of another key, and about those of the full one,
// still touches as many pages, give or take the levels of indexes.
func TestGroupCostIsIndependentOfTheBacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	ctx := testenv.Context(t)
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off)`)
	r.exec(`ALTER TABLE event_groups SET (autovacuum_enabled = off)`)
	r.exec(`VACUUM ANALYZE events_v2`)
	r.exec(`VACUUM ANALYZE event_groups`)
	if _, err := r.store.SetConcurrencyLimit(ctx, operate.ConcurrencyLimit{Canvas: another, Max: 1}); err != nil {
		t.Fatal(err)
	}
	r.groupWork("warm")
	few := r.groupWork("other")

	const backlog = 100_000
	holder := event()
	holder.OrderingKey = "full"
	held := r.insert(holder)[0]
	if advanced, err := r.store.Advance(ctx, nil, []eventqueue.EventID{held}); err != nil || len(advanced) != 1 {
		t.Fatalf("%v, %v", advanced, err)
	}
	r.exec(`WITH waiting AS (
			INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at, group_state, ordering_key)
			SELECT $1, 'WORKER', 'greet', '_', '1', now(), 1, 'full' FROM generate_series(1, $2)
			RETURNING id, canvas_id)
		INSERT INTO event_groups (event_id, stage, canvas_id, group_key) SELECT id, 1, canvas_id, 'key full' FROM waiting`, [16]byte(canvas), backlog)

	other, full := r.groupWork("other"), r.groupWork("full")
	before := r.buffers()
	for range 10 {
		advanced := r.completeInGroup(held)
		if len(advanced) != 1 || advanced[0].ID <= held {
			t.Fatalf("after event %s it is the turn of %v", held, advanced)
		}
		held = advanced[0].ID
	}
	completions := r.buffers() - before
	t.Logf("pages for ten of a key: %d; beside %d that wait: %d of another key, %d for those that join them, %d for those that end before them",
		few, backlog, other, full, completions)
	for what, n := range map[string]int{"of another key": other, "that join": full, "that end": completions} {
		if n > 2*few+500 {
			t.Errorf("behind %d events, ten %s touch %d pages instead of %d", backlog, what, n, few)
		}
	}
	before = r.buffers()
	advanced, _, err := r.store.FillGroups(ctx, operate.ConcurrencyLimit{Canvas: canvas, EveryKey: true}, "")
	if n := r.buffers() - before; err != nil || len(advanced) > 0 || n > 500 {
		t.Errorf("looking whether a line of each key has room touches %d pages, and finds %v, %v", n, advanced, err)
	}
}

// TestDeletedEventFreesItsPlaceAtOnce: all that waits in an ordering group is deleted by hand.
func TestDeletedEventFreesItsPlaceAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const deleted = 100_000
	r.exec(`INSERT INTO event_groups (event_id, stage, canvas_id, group_key, admitted)
		SELECT -n, 1, $1, 'key a', n = $2 FROM generate_series(1, $2) AS n`, [16]byte(canvas), deleted)
	e := event()
	e.OrderingKey = "a"
	id := r.insert(e)[0]
	if advanced, err := r.store.Advance(ctx, nil, []eventqueue.EventID{id}); err != nil || len(advanced) != 0 {
		t.Fatalf("before anybody knows of the one that had the turn: %v, %v", advanced, err)
	}
	began := time.Now()
	advanced, err := r.store.Advance(ctx, []eventqueue.EventID{-deleted}, nil)
	if err != nil || len(advanced) != 1 || advanced[0].ID != id {
		t.Errorf("%v, %v", advanced, err)
	}
	t.Logf("%d places went in %s", deleted, time.Since(began))
	if n := one[int](r, `SELECT count(*) FROM event_groups`); n != 1 {
		t.Errorf("%d places are left, instead of one", n)
	}
}

// TestEventsWithoutGroupsReadNoGroupRows: events without a key, beside no limit, touch
// neither places nor limits.
func TestEventsWithoutGroupsReadNoGroupRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	touched := func() int {
		t.Helper()
		r.flush()
		return one[int](r, `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del)
			FROM pg_stat_user_tables WHERE relname IN ('event_groups', 'concurrency_limits')`) +
			one[int](r, `SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'events_v2_advance'`)
	}
	r.exec(`SELECT set_config('track_functions', 'all', false)`)
	before := touched()
	for _, f := range forms {
		r.claimRenewAndComplete(f, r.insert(event(), event(), event()))
	}
	if n := touched() - before; n != 0 {
		t.Errorf("what needs no line reads and writes places and limits: %d", n)
	}
}

// TestSearchReadsTheFirstEventOfEachGroup (I12, I20): and not the places of all others before
// it, though the planner believes that there are none.
func TestSearchReadsTheFirstEventOfEachGroup(t *testing.T) {
	t.Parallel()
	const groups = 1000
	r := newRig(t)
	r = r.withConns(1)
	read := func() int {
		t.Helper()
		r.flush()
		return one[int](r, `SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'event_groups'`)
	}
	sweep := func() maintenance.Swept {
		t.Helper()
		swept, err := r.store.Sweep(testenv.Context(t), 0, groups, time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		return swept
	}
	r.exec(`VACUUM ANALYZE event_groups`)
	for range 8 { // then Postgres keeps the plan
		sweep()
	}
	events := make([]eventqueue.NewEvent, groups)
	for i := range events {
		events[i] = event()
		events[i].OrderingKey = strconv.Itoa(i)
	}
	r.insert(events...)
	before := read()
	if n := len(sweep().Lost); n != groups {
		t.Fatalf("%d of %d groups whose first event waits were found", n, groups)
	}
	if n := read() - before; n > 50*groups {
		t.Errorf("%d places were read for %d groups of one event", n, groups)
	}
}
