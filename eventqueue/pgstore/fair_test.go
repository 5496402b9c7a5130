package pgstore_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/testenv"
)

// numbered is one of many canvases; those with higher numbers come later.
func numbered(n int) (c eventqueue.CanvasID) {
	c[0] = 0xff
	binary.BigEndian.PutUint32(c[12:], uint32(n))
	return c
}

// backlog has so many events of a canvas wait for their first notification, for longer
// than any other.
func (r *rig) backlog(c eventqueue.CanvasID, n int) {
	r.t.Helper()
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until)
		SELECT $1, 'WORKER', 'greet', '_', '1', now() - interval '1 h', now() - interval '1 h' FROM generate_series(1, $2)`, [16]byte(c), n)
}

// TestCanvasWaitsBehindNoOther (I20): while one canvas has more pending than fits
// into a page, each page has the same number for every canvas, and goes on behind those
// of the page before.
func TestCanvasWaitsBehindNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const limit = 100
	page := func() map[eventqueue.CanvasID]int {
		t.Helper()
		taken, err := r.store.TakeDue(testenv.Context(t), time.Minute, limit, nil)
		if err != nil || len(taken) != limit {
			t.Fatalf("a page has %d notifications, %v; want %d", len(taken), err, limit)
		}
		of := map[eventqueue.CanvasID]int{}
		for _, n := range taken {
			of[n.Canvas]++
		}
		return of
	}
	r.backlog(canvas, 3000)
	r.backlog(another, limit)
	r.exec(`UPDATE events_v2 SET delay_until = now() WHERE canvas_id = $1`, [16]byte(another))
	page() // the oldest; that there are more is known behind it
	if of := page(); of[canvas] != limit/2 || of[another] != limit/2 {
		t.Errorf("of two canvases a page has %d and %d", of[canvas], of[another])
	}
	page()

	// With more canvases than fit into a page, each comes to its turn.
	const canvases = 250
	for i := range canvases {
		r.backlog(numbered(i), 10)
	}
	r.exec(`UPDATE events_v2 SET delay_until = now() WHERE canvas_id >= $1`, [16]byte(numbered(0)))
	served := map[eventqueue.CanvasID]bool{}
	for range canvases/limit + 2 {
		for c := range page() {
			served[c] = true
		}
	}
	if delete(served, canvas); len(served) != canvases {
		t.Errorf("%d of %d canvases were served beside a backlog", len(served), canvases)
	}
}

// TestPageCostIsIndependentOfTheBacklog (I12, I20), also when most of it is far off, and
// with the plans and statistics of a table in which nothing was pending.
func TestPageCostIsIndependentOfTheBacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	ctx := testenv.Context(t)
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off)`)
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, notified_at)
		SELECT $1, 'WORKER', 'greet', '_', '1', now() + interval '1 day', now() FROM generate_series(1, 20000)`, [16]byte(another))
	r.exec(`VACUUM ANALYZE events_v2`)
	pages := func() int {
		t.Helper()
		before := r.buffers()
		for range 10 {
			if taken, err := r.store.TakeDue(ctx, 0, 20, nil); err != nil || len(taken) != 20 {
				t.Fatalf("%d were taken, %v", len(taken), err)
			}
		}
		return r.buffers() - before
	}
	r.backlog(another, 500)
	few := pages()
	r.backlog(canvas, 50_000)
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until)
		SELECT $1, 'WORKER', 'greet', '_', '1', now() + interval '1 day' FROM generate_series(1, 50000)`, [16]byte(another))
	many := pages()
	t.Logf("ten pages touch %d pages of the table; behind a backlog %d", few, many)
	if many > 2*few+500 {
		t.Errorf("ten pages touch %d pages of the table; behind a backlog %d", few, many)
	}
}

// silent makes events of a canvas that have been silent for longer than the relay waits,
// under a handler's name.
func (r *rig) silent(c eventqueue.CanvasID, name string, n int) {
	r.t.Helper()
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
		SELECT $1, 'WORKER', $3, '_', '1', now() - interval '1 h', now() - interval '1 h', now() - interval '1 h'
		FROM generate_series(1, $2)`, [16]byte(c), n, name)
}

// round is a whole round.
func (r *rig) round() (lost []eventqueue.Notification) {
	r.t.Helper()
	for after, more := (maintenance.RoundPlace{}), true; more; {
		taken, next, err := r.store.TakeRound(testenv.Context(r.t), after, time.Minute)
		if err != nil {
			r.t.Fatal(err)
		}
		lost = append(lost, taken...)
		after, more = next, next != (maintenance.RoundPlace{})
	}
	return lost
}

// TestRoundReachesEveryHandler (I20), at the oldest and the newest events of each, and
// reads nothing of what a rule holds back.
func TestRoundReachesEveryHandler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const handlers, completions = 2400, 2 * 50
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
		SELECT $1, 'WORKER', 'name' || n, '_', '1', now() - interval '1 h', now() - interval '1 h', now() - interval '1 h'
		FROM generate_series(1, $2) AS n`, [16]byte(another), handlers)
	r.silent(canvas, "many", 2000)
	of := map[eventqueue.CanvasID]int{}
	for _, n := range r.round() {
		of[n.Canvas]++
	}
	if of[another] != handlers || of[canvas] != completions {
		t.Errorf("a round finds %d of %d handlers, and %d events of one with many, want %d", of[another], handlers, of[canvas], completions)
	}
	if lost := r.round(); len(lost) != 0 {
		t.Errorf("the next round finds %d events", len(lost))
	}
	if _, err := r.store.AddRule(ctx, operate.RuleOf(operate.PauseRule, eventqueue.Scope{Canvas: canvas, Module: "WORKER", Name: "paused"})); err != nil {
		t.Fatal(err)
	}
	before := r.buffers()
	r.round()
	few := r.buffers() - before
	r.silent(canvas, "paused", 20_000)
	r.exec(`VACUUM (ANALYZE) events_v2`)
	before = r.buffers()
	if lost := r.round(); len(lost) != 0 {
		t.Errorf("a round finds %d paused events", len(lost))
	}
	if many := r.buffers() - before; many > 2*few+500 {
		t.Errorf("a round touches %d pages, beside 20,000 paused events %d", few, many)
	}
}

// TestPartOfARoundIsBounded (I12, I20): where ninety handlers of one canvas have lost
// everything, a part takes so much that its statement is short and its notifications are
// soon published, and of another canvas as much as of that one.
func TestPartOfARoundIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const handlers, each, most = 90, 100, 5000
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
		SELECT $1, 'WORKER', 'name' || n, '_', '1', now() - interval '1 h', now() - interval '1 h', now() - interval '1 h'
		FROM generate_series(1, $2) AS n, generate_series(1, $3)`, [16]byte(another), handlers, each)
	r.silent(canvas, "few", each)
	lost, _, err := r.store.TakeRound(testenv.Context(t), maintenance.RoundPlace{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	of := map[eventqueue.CanvasID]int{}
	for _, n := range lost {
		of[n.Canvas]++
	}
	if of[canvas] != each || len(lost) != most {
		t.Errorf("a part takes %d, of which %d are of the smaller canvas; want %d and %d", len(lost), of[canvas], most, each)
	}
	if all := len(r.round()); all != handlers*each+each-most {
		t.Errorf("the next round takes %d, want all others, %d", all, handlers*each+each-most)
	}
}

// oneSide is how many events of one handler stand before and behind one that is lost.
const oneSide = 1000

// betweenOwn inserts two crowds of a handler, and between them so many events, all notified
// now by the given changes; it returns the latter.
func (r *rig) betweenOwn(crowds, own string, n int) (ids []eventqueue.EventID) {
	r.t.Helper()
	insert := func(n int, change string) []eventqueue.EventID {
		first := one[eventqueue.EventID](r, `SELECT coalesce(max(id), 0) FROM events_v2`)
		r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
			SELECT $1, 'WORKER', 'greet', '_', '1', now() - interval '1 h', now() - interval '1 h', now() FROM generate_series(1, $2)`, [16]byte(canvas), n)
		r.exec(`UPDATE events_v2 SET `+change+` WHERE id > $1`, first)
		return r.ids(`SELECT id FROM events_v2 WHERE id > $1 ORDER BY id`, first)
	}
	insert(oneSide, crowds)
	ids = insert(n, own)
	insert(oneSide, crowds)
	return ids
}

// wantRound checks what a round finds.
func (r *rig) wantRound(want []eventqueue.EventID) {
	r.t.Helper()
	var got []eventqueue.EventID
	for _, n := range r.round() {
		got = append(got, n.Event)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		r.t.Errorf("a round finds %d events, %v; want %d", len(got), got[:min(len(got), 5)], len(want))
	}
}

// TestRoundFindsEventsBetweenOwnOnes (I13, I20): an event that is lost is found at
// once, however many of the same handler wait for something else before and behind it.
func TestRoundFindsEventsBetweenOwnOnes(t *testing.T) {
	t.Parallel()
	const dead = `locked_at = now() - interval '2 min', notified_at = now() - interval '90 s', attempts = 1`
	for _, c := range []struct {
		name, crowds, own string
		n                 int
	}{
		{"put off, between many that are not due",
			`delay_until = now() + interval '5 min'`,
			`delay_until = now() - interval '10 min', notified_at = now() - interval '10 min'`, 1},
		{"running for long when its worker died, between many that run",
			`locked_at = now(), attempts = 1, begun = true`,
			dead + `, begun = true`, 20},
		{"running for long when its worker died, between many that are not due",
			`delay_until = now() + interval '5 min'`,
			dead + `, begun = true`, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ids := r.betweenOwn(c.crowds, c.own, c.n)
			r.wantRound(ids)
			r.wantRound(nil)
		})
	}
}

// TestRoundFindsAllEventsAWorkerHeld (I13): where one of the oldest events of a handler is
// lost, as when a worker has died, the round looks deeper at once.
func TestRoundFindsAllEventsAWorkerHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const held = 600
	r.silent(canvas, "greet", held)
	r.exec(`UPDATE events_v2 SET notified_at = now() - interval '90 s', locked_at = now() - interval '2 min', attempts = 1`)
	ids := r.ids(`SELECT id FROM events_v2 ORDER BY id`)
	r.silent(canvas, "greet", 3*oneSide)
	r.exec(`UPDATE events_v2 SET notified_at = now() WHERE locked_at IS NULL`)
	r.wantRound(ids)
}

// TestRoundReachesEveryGroup (order, I13): behind any number that wait in it, a turn whose
// notification is lost is told of again, one that nobody has taken is given, and one whose
// event was deleted goes to the next. A line whose first event has only just been
// notified is left alone (I11).
func TestRoundReachesEveryGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keyed := func(key string, n int) []eventqueue.EventID {
		events := make([]eventqueue.NewEvent, n)
		for i := range events {
			events[i] = event()
			events[i].OrderingKey = key
		}
		return r.insert(events...)
	}
	const waiting, groups = 200, 300 // of other keys, more than a part of a round looks at
	for i := range groups {
		keyed(fmt.Sprint("new ", i), 1)
	}
	keyed("before", waiting)
	lost, stalled, deleted := keyed("lost", 3), keyed("stalled", 3), keyed("deleted", 3)
	keyed("behind", waiting)
	r.wantAdvanced("of the line whose notification will be lost", r.advanced(nil, lost), lost[0])
	r.wantAdvanced("of the line whose first will be deleted", r.advanced(nil, deleted), deleted[0])
	old := slices.Concat(lost, stalled, deleted)
	r.exec(`UPDATE events_v2 SET notified_at = now() - interval '1 h', enqueued_at = now() - interval '1 h', delay_until = now() - interval '1 h'
		WHERE id = ANY ($1)`, old)
	r.exec(`DELETE FROM events_v2 WHERE id = $1`, deleted[0])
	r.wantRound([]eventqueue.EventID{lost[0], stalled[0], deleted[1]})
	r.wantRound(nil)
}

// TestRowsOfAnyYearFailNoOther (I15): whoever writes by SQL can write times with
// which arithmetic overflows.
func TestRowsOfAnyYearFailNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const far, ancient = "294276-12-31 00:00Z", "4714-11-24 00:00Z BC"
	ids := r.insert(event(), event(), event(), event(), event())
	if _, err := r.pool.Exec(ctx, `UPDATE events_v2 SET locked_at = $2::text::timestamptz WHERE id = $1`, ids[0], far); err == nil {
		t.Error("a lock that never expires is not refused")
	}
	r.exec(`ALTER TABLE events_v2 DROP CONSTRAINT events_v2_lock_expires`)
	r.exec(`UPDATE events_v2 SET notified_at = now() - interval '1 h', enqueued_at = now() - interval '1 h', delay_until = now() - interval '1 h'`)
	for i, column := range []string{"locked_at", "notified_at", "delay_until"} {
		r.exec(`UPDATE events_v2 SET `+column+` = $2::text::timestamptz WHERE id = $1`, ids[i], far)
	}
	r.exec(`UPDATE events_v2 SET locked_at = $2::text::timestamptz, notified_at = $2::text::timestamptz, delay_until = $2::text::timestamptz,
		enqueued_at = $2::text::timestamptz, attempts = 1 WHERE id = $1`, ids[3], ancient)
	swept, err := r.store.Sweep(ctx, 0, 100, time.Minute)
	if err != nil || len(swept.Lost) != 2 || len(swept.Ahead) != 1 || swept.Ahead[0] != ids[0] {
		t.Errorf("%+v, %v", swept, err)
	}
	r.exec(`UPDATE events_v2 SET notified_at = now() - interval '1 h' WHERE id = $1`, ids[4])
	if lost := r.round(); len(lost) != 1 || lost[0].Event != ids[4] {
		t.Errorf("a round finds %v", lost)
	}
}
