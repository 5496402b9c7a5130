package protocol

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// lineWork is what a store does about one event of each of some keys, and what it
// read and wrote for that.
func (r *rig) lineWork(keys ...string) (buffers int) {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	before := r.buffers()
	for range 10 {
		for _, k := range keys {
			first, second := event(), event()
			first.OrderingKey, second.OrderingKey = k, k
			ids := r.insert(first, second)
			r.look(ids...)
			if _, err := r.store.TakeTurns(ctx, nil, ids, lockTimeout); err != nil {
				r.t.Fatal(err)
			}
			f := r.look(ids[0])[ids[0]]
			if !f.Facts.Claimed {
				continue // behind the others of a full key
			}
			for _, label := range []machine.Label{machine.Released, machine.ExecutesToCompletion} {
				end := eventqueue.End{Claim: eventqueue.Claim{Event: ids[0], Attempt: f.Attempt}, InLine: true, Label: label}
				written, err := r.store.Finish(ctx, nil, []eventqueue.End{end}, false)
				if err != nil || len(written.Done) != 1 || (label == machine.ExecutesToCompletion) != (len(written.Turns) == 1) {
					r.t.Fatalf("%s: %+v, %v", label, written, err)
				}
				f = r.look(ids[0])[ids[0]]
			}
			r.finishInLine(ids[1])
		}
	}
	return r.buffers() - before
}

// finishInLine completes an event that has the turn of its line.
func (r *rig) finishInLine(id eventqueue.EventID) []eventqueue.Event {
	r.t.Helper()
	end := eventqueue.End{Claim: r.claim(id), InLine: true, Label: machine.ExecutesToCompletion}
	written, err := r.store.Finish(testenv.Context(r.t), nil, []eventqueue.End{end}, false)
	if err != nil || len(written.Done) != 1 {
		r.t.Fatalf("%+v, %v", written, err)
	}
	return written.Turns
}

// buffers is how many pages of the tables of lines and events were touched.
func (r *rig) buffers() int {
	r.t.Helper()
	r.flush()
	return one[int](r, `SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))
		FROM pg_statio_user_tables WHERE relname IN ('events_v2', 'event_lines', 'running_limits')`)
}

// TestALineCostsTheSameBehindABacklog (I12) works often enough for plans to be kept,
// beside empty tables, and then has a hundred thousand events wait behind one key.
// What is done about the events of another key, and about those of the full one,
// still touches as many pages, give or take the levels of indexes.
func TestALineCostsTheSameBehindABacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	ctx := testenv.Context(t)
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off)`)
	r.exec(`ALTER TABLE event_lines SET (autovacuum_enabled = off)`)
	r.exec(`VACUUM ANALYZE events_v2`)
	r.exec(`VACUUM ANALYZE event_lines`)
	if _, err := r.store.SetRunningLimit(ctx, eventqueue.RunningLimit{Canvas: another, Max: 1}); err != nil {
		t.Fatal(err)
	}
	r.lineWork("warm")
	few := r.lineWork("other")

	const backlog = 100_000
	holder := event()
	holder.OrderingKey = "full"
	held := r.insert(holder)[0]
	if turns, err := r.store.TakeTurns(ctx, nil, []eventqueue.EventID{held}, lockTimeout); err != nil || len(turns) != 1 {
		t.Fatalf("%v, %v", turns, err)
	}
	r.exec(`WITH waiting AS (
			INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at, line, ordering_key)
			SELECT $1, 'WORKER', 'greet', '_', '1', now(), 1, 'full' FROM generate_series(1, $2)
			RETURNING id, canvas_id)
		INSERT INTO event_lines (event_id, stage, canvas_id, line) SELECT id, 1, canvas_id, 'key full' FROM waiting`, [16]byte(canvas), backlog)

	other, full := r.lineWork("other"), r.lineWork("full")
	before := r.buffers()
	for range 10 {
		turns := r.finishInLine(held)
		if len(turns) != 1 || turns[0].ID <= held {
			t.Fatalf("after event %s it is the turn of %v", held, turns)
		}
		held = turns[0].ID
	}
	ends := r.buffers() - before
	t.Logf("pages for ten of a key: %d; beside %d that wait: %d of another key, %d for those that join them, %d for those that end before them",
		few, backlog, other, full, ends)
	for what, n := range map[string]int{"of another key": other, "that join": full, "that end": ends} {
		if n > 2*few+500 {
			t.Errorf("behind %d events, ten %s touch %d pages instead of %d", backlog, what, n, few)
		}
	}
	before = r.buffers()
	turns, _, err := r.store.FillLines(ctx, eventqueue.RunningLimit{Canvas: canvas, EveryKey: true}, "")
	if n := r.buffers() - before; err != nil || len(turns) > 0 || n > 500 {
		t.Errorf("looking whether a line of each key has room touches %d pages, and finds %v, %v", n, turns, err)
	}
}

// TestPlacesOfDeletedEventsGoAtOnce: somebody deletes all that waits in a line.
func TestPlacesOfDeletedEventsGoAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const deleted = 100_000
	r.exec(`INSERT INTO event_lines (event_id, stage, canvas_id, line, turn)
		SELECT -n, 1, $1, 'key a', n = $2 FROM generate_series(1, $2) AS n`, [16]byte(canvas), deleted)
	e := event()
	e.OrderingKey = "a"
	id := r.insert(e)[0]
	if turns, err := r.store.TakeTurns(ctx, nil, []eventqueue.EventID{id}, lockTimeout); err != nil || len(turns) != 0 {
		t.Fatalf("before anybody knows of the one that had the turn: %v, %v", turns, err)
	}
	began := time.Now()
	turns, err := r.store.TakeTurns(ctx, []eventqueue.EventID{-deleted}, nil, lockTimeout)
	if err != nil || len(turns) != 1 || turns[0].ID != id {
		t.Errorf("%v, %v", turns, err)
	}
	t.Logf("%d places went in %s", deleted, time.Since(began))
	if n := one[int](r, `SELECT count(*) FROM event_lines`); n != 1 {
		t.Errorf("%d places are left, instead of one", n)
	}
}

// TestWithoutLinesNothingIsReadOfThem: events without a key, beside no limit, touch
// neither places nor limits.
func TestWithoutLinesNothingIsReadOfThem(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	touched := func() int {
		t.Helper()
		r.flush()
		return one[int](r, `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del)
			FROM pg_stat_user_tables WHERE relname IN ('event_lines', 'running_limits')`) +
			one[int](r, `SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'events_v2_turns'`)
	}
	r.exec(`SELECT set_config('track_functions', 'all', false)`)
	before := touched()
	for _, f := range forms {
		r.claimRenewAndEnd(f, r.insert(event(), event(), event()))
	}
	if n := touched() - before; n != 0 {
		t.Errorf("what needs no line reads and writes places and limits: %d", n)
	}
}
