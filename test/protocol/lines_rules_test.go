package protocol

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/test/testenv"
)

// line inserts events of one key, one after the other.
func (r *rig) line(orderingKey string, n int) []eventqueue.EventID {
	r.t.Helper()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = event()
		events[i].OrderingKey = orderingKey
	}
	return r.insert(events...)
}

// turns has events leave and arrive, and returns whose turn it has become.
func (r *rig) turns(left, arrived []eventqueue.EventID) []eventqueue.EventID {
	r.t.Helper()
	turns, err := r.store.TakeTurns(testenv.Context(r.t), left, arrived, lockTimeout)
	if err != nil {
		r.t.Fatal(err)
	}
	return idsOf(turns)
}

func idsOf(turns []eventqueue.Event) (ids []eventqueue.EventID) {
	for i := range turns {
		ids = append(ids, turns[i].ID)
	}
	slices.Sort(ids)
	return ids
}

// wantTurns compares whose turn it has become.
func (r *rig) wantTurns(what string, got []eventqueue.EventID, want ...eventqueue.EventID) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Errorf("%s it is the turn of %v, want %v", what, got, want)
	}
}

// end ends a claim of a line and returns whose turn it has become.
func (r *rig) end(c eventqueue.Claim, label machine.Label, delay time.Duration, passes bool) []eventqueue.EventID {
	r.t.Helper()
	end := eventqueue.End{Claim: c, Label: label, Delay: delay, InLine: true, Passes: passes, LastError: "no luck"}
	written, err := r.store.Finish(testenv.Context(r.t), nil, []eventqueue.End{end}, false)
	if err != nil || len(written.Done) != 1 {
		r.t.Fatalf("%s: %+v, %v", label, written, err)
	}
	return idsOf(written.Turns)
}

func (r *rig) limit(l eventqueue.RunningLimit) {
	r.t.Helper()
	if _, err := r.store.SetRunningLimit(testenv.Context(r.t), l); err != nil {
		r.t.Fatal(err)
	}
}

// label is what a worker's look at an event ends with.
func (r *rig) label(id eventqueue.EventID) machine.Label {
	r.t.Helper()
	_, label := machine.Look(r.look(id)[id].Facts)
	return label
}

// TestALineGoesByIds: also when an event with a lower one is committed later, comes
// back from event_log, or was put off without holding the others.
func TestALineGoesByIds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	late, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback(ctx) }()
	e := event()
	e.OrderingKey = "a"
	inserted, err := r.store.Insert(ctx, late, []eventqueue.NewEvent{e}, eventqueue.AnnounceSelf)
	if err != nil {
		t.Fatal(err)
	}
	first := inserted[0].ID
	ids := r.line("a", 3)
	other := r.line("b", 1)
	r.wantTurns("at first", r.turns(nil, append(slices.Clone(ids), other...)), ids[0], other[0])
	if err := late.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if label := r.label(first); label != machine.NotItsTurn {
		t.Errorf("the late one: %s", label)
	}
	r.wantTurns("with the late one", r.turns(nil, []eventqueue.EventID{first}))
	failed := r.claim(ids[0])
	r.wantTurns("after the one before it", r.end(failed, machine.FailedForGood, 0, false), first)
	if _, err := r.store.Retry(ctx, []eventqueue.EventID{ids[0]}); err != nil {
		t.Fatal(err)
	}
	r.wantTurns("with one that is back", r.turns(nil, ids[:1]))
	r.wantTurns("when the late one is released", r.end(r.claim(first), machine.Released, 0, false))
	r.wantTurns("while it is put off", r.end(r.claim(first), machine.RetryAllowed, 0, false))
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() WHERE id = $1`, first)
	r.wantTurns("when it lets others go first", r.end(r.claim(first), machine.Snoozed, time.Millisecond, true), ids[0])
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() WHERE id = $1`, first)
	r.wantTurns("when it is due", r.turns(nil, []eventqueue.EventID{first}))
	for i, next := range []eventqueue.EventID{first, ids[1], ids[2]} {
		before := []eventqueue.EventID{ids[0], first, ids[1]}[i]
		r.wantTurns("then", r.end(r.claim(before), machine.ExecutesToCompletion, 0, false), next)
	}
}

// TestALimitCountsWhatBeginsUnderIt: what ran before, or is taken over from a worker
// that died, needs no turn; what begins needs one, and so does its next run.
func TestALimitCountsWhatBeginsUnderIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old, taken, keyed := r.insert(event())[0], r.insert(event())[0], r.line("a", 1)[0]
	ids := r.insert(event(), event())
	r.turns(nil, []eventqueue.EventID{keyed})
	before, inLine := r.claim(old), r.claim(keyed)
	r.claim(taken)
	r.limit(eventqueue.RunningLimit{Canvas: canvas, Max: 1})
	r.expire(taken)
	if label := r.label(taken); label != machine.Claimed {
		t.Errorf("an event whose worker died before there was a limit: %s", label)
	}
	if label := r.label(ids[0]); label != machine.NotItsTurn {
		t.Errorf("an event that has not begun: %s", label)
	}
	r.wantTurns("under a limit of one", r.turns(nil, ids), ids[0])
	r.finish(before, machine.Released, 0, false)
	r.end(inLine, machine.Released, 0, false)
	for _, id := range []eventqueue.EventID{old, keyed} {
		if label := r.label(id); label != machine.NotItsTurn {
			t.Errorf("the next run of an event that began before there was a limit: %s", label)
		}
	}
	r.wantTurns("for the next run", r.turns(nil, []eventqueue.EventID{old, keyed}))
	r.wantTurns("when it is put off", r.end(r.claim(ids[0]), machine.RetryAllowed, time.Hour, false), old)
	r.wantTurns("after it", r.end(r.claim(old), machine.ExecutesToCompletion, 0, false), keyed)
	r.wantTurns("after that", r.end(r.claim(keyed), machine.ExecutesToCompletion, 0, false), ids[1])
}

// TestALimitIsNotHeldByWhatCannotRun: nor by a run whose worker has died, whatever
// keeps others from taking it over.
func TestALimitIsNotHeldByWhatCannotRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.limit(eventqueue.RunningLimit{Canvas: canvas, Max: 1})
	ids := r.insert(event(), event(), event())
	r.wantTurns("at first", r.turns(nil, ids), ids[0])
	r.wantTurns("when it is given back", r.turns(ids[:1], nil), ids[1])
	died := r.claim(ids[1])
	r.wantTurns("while another runs", r.turns(ids[1:2], nil))
	r.expire(ids[1])
	r.wantTurns("when its worker has died", r.turns(ids[1:2], nil), ids[2])
	if got := r.mustRow(ids[1]); got.LockedAt != nil || got.Retries != 1 {
		t.Errorf("the run that was lost: %+v", got)
	}
	if r.finish(died, machine.ExecutesToCompletion, 0, false) {
		t.Error("who lost its turn has ended its event")
	}
}

// TestATransactionHoldsNoLine: one that completes an event in it and stays open is
// waited for by nobody, and the turn is given when it has committed.
func TestATransactionHoldsNoLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.line("a", 3)
	r.wantTurns("at first", r.turns(nil, ids), ids[0])
	end := eventqueue.End{Claim: r.claim(ids[0]), InLine: true, Label: machine.ExecutesToCompletion}
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	written, err := r.store.Finish(ctx, tx, []eventqueue.End{end}, false)
	if err != nil || len(written.Done) != 1 || len(written.Turns) != 0 {
		t.Fatalf("in the transaction: %+v, %v", written, err)
	}
	r.wantTurns("while it is open", r.turns(nil, ids[1:]))
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	r.wantTurns("before its end is told", r.turns(nil, ids[1:]))
	written, err = r.store.Finish(ctx, nil, []eventqueue.End{end}, false)
	if err != nil || len(written.Lost) != 1 {
		t.Fatalf("%+v, %v", written, err)
	}
	r.wantTurns("after it", idsOf(written.Turns), ids[1])
}

// TestALineThatIsHeldDelaysNoOther (I15): somebody holds one for long. Who needs it gives
// up after a while, and the relay finds what else is lost.
func TestALineThatIsHeldDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.line("a", 2)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended(format('events_v2 1 %s key a', canvas_id), 0))
		FROM events_v2 LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	var pg *pgconn.PgError
	if _, err := r.store.TakeTurns(ctx, nil, ids[:1], lockTimeout); !errors.As(err, &pg) || pg.Code != "55P03" {
		t.Errorf("a line that is held: %v", err)
	}
	other := event()
	other.Canvas = another
	lost := r.insert(other)[0]
	r.exec(`UPDATE events_v2 SET notified_at = notified_at - interval '1 hour', enqueued_at = enqueued_at - interval '1 hour', delay_until = delay_until - interval '1 hour'
		WHERE id = $1`, lost)
	taken, _, err := r.store.TakeLost(ctx, 0, 100, time.Minute, lockTimeout)
	if err != nil || len(taken) != 1 || taken[0].Event != lost {
		t.Errorf("lost are %v, %v", taken, err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	taken, _, err = r.store.TakeLost(ctx, 0, 100, time.Minute, lockTimeout)
	if err != nil || len(taken) != 1 || taken[0].Event != ids[0] {
		t.Errorf("then lost are %v, %v", taken, err)
	}
}

// TestTheRelayMendsLines: turns that nobody has, places of nobody, in any line.
func TestTheRelayMendsLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	mended := func() (ids []eventqueue.EventID) {
		t.Helper()
		for after := eventqueue.EventID(0); ; {
			taken, next, err := r.store.TakeLost(ctx, after, 2, time.Hour, lockTimeout)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range taken {
				ids = append(ids, n.Event)
			}
			if after = next; next == 0 {
				slices.Sort(ids)
				return ids
			}
		}
	}
	a, b := r.line("a", 5), r.line("b", 2)
	r.wantTurns("of two keys", mended(), a[0], b[0])
	r.wantTurns("again", mended())
	r.exec(`DELETE FROM events_v2 WHERE id = ANY ($1)`, []eventqueue.EventID{a[0], a[1], b[0], b[1]})
	r.wantTurns("after deletions", mended(), a[2])
	if n := one[int](r, `SELECT count(*) FROM event_lines`); n != 3 {
		t.Errorf("%d places of three events", n)
	}
	// The one that is next has a place in another line than the first of its key.
	r.limit(eventqueue.RunningLimit{Canvas: canvas, Max: 1})
	free := r.insert(event(), event())
	r.wantTurns("of the canvas", r.turns(nil, free), free[0])
	r.exec(`DELETE FROM events_v2 WHERE id = $1`, free[0])
	r.wantTurns("of the canvas", mended(), free[1])
}

// TestARequeuedEventStaysInItsLine: it may run now, but not before others.
func TestARequeuedEventStaysInItsLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.line("a", 2)
	r.wantTurns("at first", r.turns(nil, ids), ids[0])
	r.wantTurns("while it is put off", r.end(r.claim(ids[0]), machine.RetryAllowed, time.Hour, false))
	if _, err := r.store.Requeue(ctx, ids, lockTimeout); err != nil {
		t.Fatal(err)
	}
	if first, second := r.label(ids[0]), r.label(ids[1]); first != machine.Claimed || second != machine.NotItsTurn {
		t.Errorf("the first: %s, the second: %s", first, second)
	}
}

// TestAUniqueEventTakesAPlaceOnce: the repeat of its key has none, also in a batch
// whose other events rely on each other.
func TestAUniqueEventTakesAPlaceOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unique, plain := event(), event()
	unique.OrderingKey, unique.UniqueKey, plain.OrderingKey = "a", "u", "a"
	ids := r.insert(unique, plain, unique, plain)
	if ids[0] != ids[2] {
		t.Fatalf("one key, two events: %v", ids)
	}
	if places, silent := one[int](r, `SELECT count(*) FROM event_lines`), ids[1]; places != 3 {
		t.Errorf("%d places of three events, silent %s", places, silent)
	}
	r.wantTurns("at first", r.turns(nil, ids[:1]), ids[0])
	r.wantTurns("then", r.end(r.claim(ids[0]), machine.ExecutesToCompletion, 0, false), ids[1])
}

// TestManyLinesAtOnce: more than one call of the database takes.
func TestManyLinesAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const keys = 2*eventqueue.MaxTurns + 10
	var events []eventqueue.NewEvent
	for k := range keys {
		e := event()
		e.OrderingKey = fmt.Sprint(k)
		events = append(events, e, e, e)
	}
	ids := r.insert(events...)
	if n := len(r.turns(nil, ids)); n != keys {
		t.Errorf("it is the turn of %d events of %d keys", n, keys)
	}
	limits, err := eventqueue.NewRunningLimits(r.store, r.queue(memnotify.New(memnotify.Config{})))
	if err != nil {
		t.Fatal(err)
	}
	every := eventqueue.RunningLimit{Canvas: canvas, EveryKey: true, Max: 2}
	for most := 2; most <= 3; most++ {
		if most == 3 {
			if _, err := limits.Remove(ctx, every); err != nil { // which takes no turn away
				t.Fatal(err)
			}
			every.Max = 3
		}
		if err := limits.Set(ctx, every); err != nil {
			t.Fatal(err)
		}
		if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE line = 2`); n != most*keys {
			t.Errorf("it is the turn of %d events of %d keys with a limit of %d", n, keys, most)
		}
	}
}
