package pgstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
	"eventsv2/test/testenv"
)

// TestLockedDueEventsAreReplacedByOthers (I13): a page that is not full means that nothing else is due,
// whatever rows others are writing. So it is by age and from canvas to canvas.
func TestLockedDueEventsAreReplacedByOthers(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]bool{"by age": false, "from canvas to canvas": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ctx := testenv.Context(t)
			const limit = 3
			if behind {
				r.insertPending(limit)
				if taken, err := r.store.TakeDue(ctx, 0, limit, nil); err != nil || len(taken) != limit {
					t.Fatalf("%d events were taken, %v", len(taken), err)
				}
			}
			ids := r.insertPending(3 * limit)
			tx, err := r.pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
			if _, err := tx.Exec(ctx, `SELECT FROM events_v2 WHERE id <= $1 FOR UPDATE`, ids[limit+1]); err != nil {
				t.Fatal(err)
			}
			for _, want := range []int{limit, 1, 0} {
				if taken, err := r.store.TakeDue(ctx, 0, limit, nil); err != nil || len(taken) != want {
					t.Errorf("%d events were taken, %v; want %d", len(taken), err, want)
				}
			}
		})
	}
}

// TestPageEndsDespiteSkippedRows (I15), as by a trigger that says so for every update.
func TestPageEndsDespiteSkippedRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.insert(badEvent(), badEvent())
	good := r.insert(event(), event())
	r.exec(pendingSQL)
	r.exec(`CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RETURN CASE WHEN OLD.value <> '"bad"' THEN NEW END; END $$`)
	r.exec(`CREATE TRIGGER leave BEFORE UPDATE ON events_v2 FOR EACH ROW EXECUTE FUNCTION leave()`)
	ctx := testenv.Context(t)
	if taken, err := r.store.TakeDue(ctx, 0, 3, nil); err != nil || len(taken) != 2 || taken[0].Event+taken[1].Event != good[0]+good[1] {
		t.Errorf("%v were taken, %v; want %v", taken, err, good)
	}
}

// insertPending inserts due events whose notifications are pending.
func (r *rig) insertPending(n int) []eventqueue.EventID {
	r.t.Helper()
	ids := r.insert(slices.Repeat([]eventqueue.NewEvent{event()}, n)...)
	if err := r.store.MarkPending(testenv.Context(r.t), ids); err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// awaitedTakes records the takes of one TakeDue.
type awaitedTakes struct {
	ids  []eventqueue.EventID // each once
	lost int                  // statements that may have committed without an answer
	over int                  // all statements
}

func (a *awaitedTakes) await(ids []eventqueue.EventID) (over func(err error)) {
	a.ids = append(a.ids, ids...)
	slices.Sort(a.ids)
	a.ids = slices.Compact(a.ids)
	return func(err error) {
		a.over++
		if err != nil && sqlstate.MayHaveCommitted(err) {
			a.lost++
		}
	}
}

// TestDueTakeAwaitsWhatItMayTake (I19): whoever takes it can mark it as pending again if the
// answer is lost. A row that the database refuses to write is no lost answer.
func TestDueTakeAwaitsWhatItMayTake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	ctx := testenv.Context(t)
	take := func(ctx context.Context) (a awaitedTakes, taken []eventqueue.Notification, err error) {
		taken, err = r.store.TakeDue(ctx, 0, 10, a.await)
		return a, taken, err
	}
	if a, _, err := take(ctx); err != nil || a.over != 0 {
		t.Errorf("without events %v, %v", a, err)
	}
	ids := r.insertPending(3)
	if a, taken, err := take(ctx); err != nil || len(taken) != 3 || !slices.Equal(a.ids, ids) || a.over != 1 || a.lost != 0 {
		t.Errorf("%d events were taken, %v; awaited were %v", len(taken), err, a)
	}

	ids = append(r.insertPending(1), r.insert(badEvent())...)
	r.exec(pendingSQL+` WHERE id = $1`, ids[1])
	r.refuseUpdates("23514")
	if a, taken, err := take(ctx); !refusal.Is(err) || len(taken) != 1 || !slices.Equal(a.ids, ids) || a.over == 0 || a.lost != 0 {
		t.Errorf("beside a refused row %d events were taken, %v; awaited were %v", len(taken), err, a)
	}
	ids = r.insertPending(1)
	if a, taken, err := take(ctx); err != nil || len(taken) != 1 || !slices.Equal(a.ids, ids) {
		t.Errorf("while a refused row waits %d events were taken, %v; awaited were %v", len(taken), err, a)
	}
	r.exec(`DROP TRIGGER refuse_bad ON events_v2`)

	ids = r.insertPending(2)
	r.exec(`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$`)
	r.exec(`CREATE TRIGGER hang AFTER UPDATE ON events_v2 FOR EACH ROW EXECUTE FUNCTION hang()`)
	ended, cancel := context.WithTimeout(ctx, 10*time.Second) // in which the statement has come to hang
	defer cancel()
	if a, _, err := take(ended); !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(a.ids, ids) || a.lost != 1 {
		t.Errorf("without an answer %v; awaited were %v", err, a)
	}
}

// TestFailureOfASearchIsReportedBesideItsRows, which are published nevertheless.
func TestFailureOfASearchIsReportedBesideItsRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keyed := event()
	keyed.OrderingKey = "a"
	lost := r.insert(event())
	r.insert(keyed) // whose ordering group was never advanced to it
	r.exec(lostLongAgoSQL)
	r.exec(`CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'the groups are busy' USING ERRCODE = '40001'; END $$`)
	r.exec(`CREATE TRIGGER conflict BEFORE INSERT OR UPDATE ON event_groups FOR EACH ROW EXECUTE FUNCTION conflict()`)
	swept, err := r.store.Sweep(testenv.Context(t), 0, 100, time.Minute)
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused.Rest == nil || len(refused.Rows) != 0 {
		t.Errorf("the sweep returned %v", err)
	}
	if len(swept.Lost) != 1 || swept.Lost[0].Event != lost[0] {
		t.Errorf("taken were %v", swept.Lost)
	}
	if _, err := r.store.Sweep(testenv.Context(t), 0, 100, time.Minute); err == nil || refusal.Is(err) {
		t.Errorf("a sweep that has taken nothing returned %v", err)
	}
}

// TestRefusalAtCommitTakesNothing (I11), as by a deferred constraint: the statement has returned its rows by then.
func TestRefusalAtCommitTakesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bad := r.insert(badEvent())
	good := r.insert(event(), event())
	r.exec(pendingSQL)
	r.exec(`CREATE FUNCTION refuse_late() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF NEW.value = '"bad"' THEN RAISE EXCEPTION 'not this one' USING ERRCODE = '23514'; END IF; RETURN NULL; END $$`)
	r.exec(`CREATE CONSTRAINT TRIGGER refuse_late AFTER UPDATE ON events_v2 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_late()`)
	taken, err := r.store.TakeDue(testenv.Context(t), 0, 10, nil)
	var refused *refusal.Error
	if !errors.As(err, &refused) || len(refused.Rows) != 1 || refused.Rows[0].Event != bad[0] {
		t.Errorf("TakeDue returned %v, want the refused row %v", err, bad)
	}
	var ids []eventqueue.EventID
	for _, n := range taken {
		ids = append(ids, n.Event)
	}
	if slices.Sort(ids); !slices.Equal(ids, good) {
		t.Errorf("%v were taken, want %v once each", ids, good)
	}
}

// TestRowsHeldByARunningTakeAreNotMarked (I19): a commit may outlive its client, and whoever marks them learns that.
func TestRowsHeldByARunningTakeAreNotMarked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.insertPending(3)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, `UPDATE events_v2 SET notified_at = clock_timestamp() WHERE id = ANY ($1)`, ids[:2]); err != nil {
		t.Fatal(err)
	}
	mark := func(want []eventqueue.EventID) {
		t.Helper()
		held, err := r.store.MarkPendingOrHeld(ctx, append(ids, 999_999)) // of which one is gone
		if slices.Sort(held); err != nil || !slices.Equal(held, want) {
			t.Errorf("held are %v, %v; want %v", held, err, want)
		}
	}
	mark(ids[:2])
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	mark(nil)
	if taken, err := r.store.TakeDue(ctx, 0, 10, nil); err != nil || len(taken) != 3 {
		t.Errorf("then %d events are pending, %v", len(taken), err)
	}
}

// The part of a page that a canvas has is its own, even while others hold the oldest of its rows.
func TestHeldRowIsReplacedByOneOfItsCanvas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const canvases, limit = 3, 6
	for i := range canvases {
		r.backlog(numbered(i), 10)
	}
	page := func() map[eventqueue.CanvasID]int {
		t.Helper()
		taken, err := r.store.TakeDue(ctx, time.Minute, limit, nil)
		if err != nil {
			t.Fatal(err)
		}
		served := map[eventqueue.CanvasID]int{}
		for _, n := range taken {
			served[n.Canvas]++
		}
		return served
	}
	page() // the oldest; that there are more is known behind it
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	held := numbered(canvases - 1)
	const oldest = `SELECT FROM events_v2 WHERE canvas_id = $1 AND notified_at IS NULL ORDER BY delay_until, id LIMIT 5 FOR UPDATE`
	if _, err := tx.Exec(ctx, oldest, [16]byte(held)); err != nil {
		t.Fatal(err)
	}
	served := page()
	for i := range canvases {
		if n := served[numbered(i)]; n != limit/canvases {
			t.Errorf("canvas %d has %d of a page of %d", i, n, limit)
		}
	}
}

// TestHeldRowDoesNotResetTheRotation (I20): while the row of one canvas is locked, all others are reached.
func TestHeldRowDoesNotResetTheRotation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const limit, canvases = 100, 250
	for i := range canvases {
		r.backlog(numbered(i), 10)
	}
	page := func() []eventqueue.Notification {
		t.Helper()
		taken, err := r.store.TakeDue(ctx, time.Minute, limit, nil)
		if err != nil || len(taken) != limit {
			t.Fatalf("a page has %d notifications, %v", len(taken), err)
		}
		return taken
	}
	served := map[eventqueue.CanvasID]bool{}
	serve := func() {
		t.Helper()
		for _, n := range page() {
			served[n.Canvas] = true
		}
	}
	serve() // the oldest; that there are more is known behind it
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	held := numbered(limit / 2)
	if _, err := tx.Exec(ctx, `SELECT FROM events_v2 WHERE canvas_id = $1 AND notified_at IS NULL FOR UPDATE`, [16]byte(held)); err != nil {
		t.Fatal(err)
	}
	for range canvases/limit + 1 {
		serve()
	}
	served[held] = true
	if len(served) != canvases {
		t.Errorf("%d of %d canvases were served", len(served), canvases)
	}
}
