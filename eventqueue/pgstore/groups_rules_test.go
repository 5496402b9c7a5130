package pgstore_test

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
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// group inserts events of one key, one after the other.
func (r *rig) group(orderingKey string, n int) []eventqueue.EventID {
	r.t.Helper()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = event()
		events[i].OrderingKey = orderingKey
	}
	return r.insert(events...)
}

// advanced has events leave and arrive, and returns whose turn it has become.
func (r *rig) advanced(left, arrived []eventqueue.EventID) []eventqueue.EventID {
	r.t.Helper()
	advanced, err := r.store.Advance(testenv.Context(r.t), left, arrived)
	if err != nil {
		r.t.Fatal(err)
	}
	return idsOf(advanced)
}

func idsOf(advanced []eventqueue.Event) (ids []eventqueue.EventID) {
	for i := range advanced {
		ids = append(ids, advanced[i].ID)
	}
	slices.Sort(ids)
	return ids
}

// wantAdvanced compares whose turn it has become.
func (r *rig) wantAdvanced(what string, got []eventqueue.EventID, want ...eventqueue.EventID) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Errorf("%s it is the turn of %v, want %v", what, got, want)
	}
}

// end ends a claim of a line and returns whose turn it has become.
func (r *rig) end(c worker.Claim, label machine.Label, delay time.Duration, passes bool) []eventqueue.EventID {
	r.t.Helper()
	end := worker.Completion{Claim: c, Label: label, Delay: delay, Grouped: true, Passes: passes, LastError: "no luck"}
	written, err := r.store.Complete(testenv.Context(r.t), nil, []worker.Completion{end}, false)
	if err != nil || len(written.Done) != 1 {
		r.t.Fatalf("%s: %+v, %v", label, written, err)
	}
	return idsOf(written.Advanced)
}

func (r *rig) limit(l operate.ConcurrencyLimit) {
	r.t.Helper()
	if _, err := r.store.SetConcurrencyLimit(testenv.Context(r.t), l); err != nil {
		r.t.Fatal(err)
	}
}

// label is the outcome of a worker's claim of an event.
func (r *rig) label(id eventqueue.EventID) machine.Label {
	r.t.Helper()
	_, label := machine.DecideClaim(r.look(id)[id].Facts)
	return label
}

// TestGroupRunsInOrderOfIDs: also when an event with a lower one is committed later, comes
// back from event_log, or was put off without holding the others.
func TestGroupRunsInOrderOfIDs(t *testing.T) {
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
	inserted, err := r.store.Insert(ctx, late, []eventqueue.NewEvent{e}, eventqueue.NotifyModeSelf)
	if err != nil {
		t.Fatal(err)
	}
	first := inserted[0].ID
	ids := r.group("a", 3)
	other := r.group("b", 1)
	r.wantAdvanced("at first", r.advanced(nil, append(slices.Clone(ids), other...)), ids[0], other[0])
	if err := late.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if label := r.label(first); label != machine.NotItsTurn {
		t.Errorf("the late one: %s", label)
	}
	r.wantAdvanced("with the late one", r.advanced(nil, []eventqueue.EventID{first}))
	failed := r.claim(ids[0])
	r.wantAdvanced("after the one before it", r.end(failed, machine.FailedForGood, 0, false), first)
	if _, err := r.store.Retry(ctx, operate.Edit{}, []eventqueue.EventID{ids[0]}); err != nil {
		t.Fatal(err)
	}
	r.wantAdvanced("with one that is back", r.advanced(nil, ids[:1]))
	r.wantAdvanced("when the late one is released", r.end(r.claim(first), machine.Released, 0, false))
	r.wantAdvanced("while it is put off", r.end(r.claim(first), machine.RetryAllowed, 0, false))
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() WHERE id = $1`, first)
	r.wantAdvanced("when it lets others go first", r.end(r.claim(first), machine.Snoozed, time.Millisecond, true), ids[0])
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() WHERE id = $1`, first)
	r.wantAdvanced("when it is due", r.advanced(nil, []eventqueue.EventID{first}))
	for i, next := range []eventqueue.EventID{first, ids[1], ids[2]} {
		before := []eventqueue.EventID{ids[0], first, ids[1]}[i]
		r.wantAdvanced("then", r.end(r.claim(before), machine.ExecutesToCompletion, 0, false), next)
	}
}

// TestLimitCountsRunsStartedUnderIt: what ran before, or is taken over from a worker
// that died, needs no turn; what begins needs one, and so does its next run.
func TestLimitCountsRunsStartedUnderIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old, taken, keyed := r.insert(event())[0], r.insert(event())[0], r.group("a", 1)[0]
	ids := r.insert(event(), event())
	r.advanced(nil, []eventqueue.EventID{keyed})
	before, grouped := r.claim(old), r.claim(keyed)
	r.claim(taken)
	r.limit(operate.ConcurrencyLimit{Canvas: canvas, Max: 1})
	r.expire(taken)
	if label := r.label(taken); label != machine.Claimed {
		t.Errorf("an event whose worker died before there was a limit: %s", label)
	}
	if label := r.label(ids[0]); label != machine.NotItsTurn {
		t.Errorf("an event that has not begun: %s", label)
	}
	r.wantAdvanced("under a limit of one", r.advanced(nil, ids), ids[0])
	r.complete(before, machine.Released, 0, false)
	r.end(grouped, machine.Released, 0, false)
	for _, id := range []eventqueue.EventID{old, keyed} {
		if label := r.label(id); label != machine.NotItsTurn {
			t.Errorf("the next run of an event that began before there was a limit: %s", label)
		}
	}
	r.wantAdvanced("for the next run", r.advanced(nil, []eventqueue.EventID{old, keyed}))
	r.wantAdvanced("when it is put off", r.end(r.claim(ids[0]), machine.RetryAllowed, time.Hour, false), old)
	r.wantAdvanced("after it", r.end(r.claim(old), machine.ExecutesToCompletion, 0, false), keyed)
	r.wantAdvanced("after that", r.end(r.claim(keyed), machine.ExecutesToCompletion, 0, false), ids[1])
}

// TestUnrunnableEventHoldsNoLimit: nor by a run whose worker has died, whatever
// keeps others from taking it over.
func TestUnrunnableEventHoldsNoLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.limit(operate.ConcurrencyLimit{Canvas: canvas, Max: 1})
	ids := r.insert(event(), event(), event())
	r.wantAdvanced("at first", r.advanced(nil, ids), ids[0])
	r.wantAdvanced("when it is given back", r.advanced(ids[:1], nil), ids[1])
	died := r.claim(ids[1])
	r.exec(`UPDATE events_v2 SET suspect = 1 WHERE id = $1`, ids[1])
	r.wantAdvanced("while another runs", r.advanced(ids[1:2], nil))
	r.expire(ids[1])
	r.wantAdvanced("when its worker has died", r.advanced(ids[1:2], nil), ids[2])
	if got := r.mustRow(ids[1]); got.LockedAt != nil || got.Retries != 1 {
		t.Errorf("the run that was lost: %+v", got)
	}
	if r.complete(died, machine.ExecutesToCompletion, 0, false) {
		t.Error("a worker that lost its place has ended its event")
	}
}

// TestPlaceTakenBackKeepsTheCountOfLostRuns (I9): the next claim reports that the last run was
// lost, and counts nothing twice.
func TestPlaceTakenBackKeepsTheCountOfLostRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.limit(operate.ConcurrencyLimit{Canvas: canvas, Max: 1})
	ids := r.insert(event())
	r.wantAdvanced("at first", r.advanced(nil, ids), ids[0])
	r.claim(ids[0])
	r.exec(`UPDATE events_v2 SET suspect = 1`)
	r.expire(ids[0])
	r.wantAdvanced("when its worker has died", r.advanced(ids, nil))
	r.wantAdvanced("when it comes back", r.advanced(nil, ids), ids[0])
	if f := r.look(ids...)[ids[0]]; !f.LostRun || f.Event.Retries != 1 {
		t.Errorf("claimed after that: %+v", f)
	}
}

// TestPausedEventHoldsNoLimit: by a rule or a delay, whether or not a worker has
// died with it. Who comes to the limit takes the turn back, and the relay does.
func TestPausedEventHoldsNoLimit(t *testing.T) {
	t.Parallel()
	for _, relay := range []bool{false, true} {
		for _, hold := range []string{
			`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name) SELECT 'pause', canvas_id, module, name FROM events_v2 WHERE id = $1`,
			`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '1 hour' WHERE id = $1`,
			insertNarrowRuleSQL + `SELECT 'pause', canvas_id, module, name, modifier, false, NULL, NULL, NULL FROM events_v2 WHERE id = $1`,
			insertNarrowRuleSQL + `SELECT 'pause', canvas_id, module, left(name, 2), '', true, NULL, NULL, NULL FROM events_v2 WHERE id = $1`,
			insertNarrowRuleSQL + `SELECT 'pause', canvas_id, module, name, '', false, 1, 0, now() FROM events_v2 WHERE id = $1`,
		} {
			t.Run(fmt.Sprintf("relay %t, %.6s", relay, hold), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.limit(operate.ConcurrencyLimit{Canvas: canvas, Max: 1})
				others := []eventqueue.NewEvent{event(), event(), event()}
				for i := range others {
					others[i].Name = "other"
				}
				mine, ids := r.insert(event())[0], r.insert(others...)
				take := func() []eventqueue.EventID {
					if !relay {
						return r.advanced(nil, ids)
					}
					taken, _, err := r.store.TakeLost(testenv.Context(t), 0, 100, time.Hour)
					if err != nil {
						t.Fatal(err)
					}
					var ids []eventqueue.EventID
					for _, n := range taken {
						ids = append(ids, n.Event)
					}
					return ids
				}
				r.wantAdvanced("at first", r.advanced(nil, append([]eventqueue.EventID{mine}, ids...)), mine)
				r.claim(mine)
				r.exec(hold, mine)
				r.wantAdvanced("while it runs", take())
				r.expire(mine)
				r.wantAdvanced("when its worker has died", take(), ids[0])
				if got := r.mustRow(mine); got.LockedAt != nil {
					t.Errorf("the run that was lost: %+v", got)
				}
			})
		}
	}
}

const insertNarrowRuleSQL = `INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, modifier, prefix, rate, released_to, released_at) `

// TestRuleForOtherEventsFreesNoPlace: of another modifier, of a prefix that the name does not have, and one that is being
// lifted and has come to the event.
func TestRuleForOtherEventsFreesNoPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.limit(operate.ConcurrencyLimit{Canvas: canvas, Max: 1})
	ids := r.insert(event(), event())
	r.wantAdvanced("at first", r.advanced(nil, ids), ids[0])
	for _, rule := range []string{`name, 'another', false, NULL, NULL, NULL`, `'x', '', true, NULL, NULL, NULL`, `name, '', false, 1, id, now()`} {
		r.exec(insertNarrowRuleSQL+`SELECT 'pause', canvas_id, module, `+rule+` FROM events_v2 WHERE id = $1`, ids[0])
	}
	r.wantAdvanced("beside rules of others", r.advanced(nil, ids[1:]))
	r.claim(ids[0])
}

// TestOpenTransactionBlocksNoGroup: one that completes an event in it and stays open is
// waited for by nobody, and the turn is given when it has committed.
func TestOpenTransactionBlocksNoGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.group("a", 3)
	r.wantAdvanced("at first", r.advanced(nil, ids), ids[0])
	end := worker.Completion{Claim: r.claim(ids[0]), Grouped: true, Label: machine.ExecutesToCompletion}
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	written, err := r.store.Complete(ctx, tx, []worker.Completion{end}, false)
	if err != nil || len(written.Done) != 1 || len(written.Advanced) != 0 {
		t.Fatalf("in the transaction: %+v, %v", written, err)
	}
	r.wantAdvanced("while it is open", r.advanced(nil, ids[1:]))
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	r.wantAdvanced("before its end is told", r.advanced(nil, ids[1:]))
	written, err = r.store.Complete(ctx, nil, []worker.Completion{end}, false)
	if err != nil || len(written.Lost) != 1 {
		t.Fatalf("%+v, %v", written, err)
	}
	r.wantAdvanced("after it", idsOf(written.Advanced), ids[1])
}

// TestLockedGroupDelaysNoOther (I15): one is locked for long. Who needs it gives
// up after a while, and the relay finds what else is lost.
func TestLockedGroupDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.group("a", 2)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `INSERT INTO event_group_locks (number)
		SELECT 262144 + (hashtextextended(format('%s key a', canvas_id), 0) & 262143)::integer FROM events_v2 LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	var pg *pgconn.PgError
	if _, err := r.store.Advance(ctx, nil, ids[:1]); !errors.As(err, &pg) || pg.Code != "55P03" {
		t.Errorf("a line that is held: %v", err)
	}
	taken, _, err := r.store.TakeLost(ctx, 0, 100, time.Minute)
	if err != nil || len(taken) != 0 {
		t.Errorf("where nothing else is lost, lost are %v, %v", taken, err)
	}
	other := event()
	other.Canvas = another
	lost := r.insert(other)[0]
	r.exec(`UPDATE events_v2 SET notified_at = notified_at - interval '1 hour', enqueued_at = enqueued_at - interval '1 hour', delay_until = delay_until - interval '1 hour'
		WHERE id = $1`, lost)
	taken, _, err = r.store.TakeLost(ctx, 0, 100, time.Minute)
	if err != nil || len(taken) != 1 || taken[0].Event != lost {
		t.Errorf("lost are %v, %v", taken, err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	taken, _, err = r.store.TakeLost(ctx, 0, 100, time.Minute)
	if err != nil || len(taken) != 1 || taken[0].Event != ids[0] {
		t.Errorf("then lost are %v, %v", taken, err)
	}
}

// TestRelayRepairsGroups: turns that nobody has, places of nobody, in any line.
func TestRelayRepairsGroups(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	repaired := func() (ids []eventqueue.EventID) {
		t.Helper()
		for after := eventqueue.EventID(0); ; {
			taken, next, err := r.store.TakeLost(ctx, after, 2, time.Hour)
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
	a, b := r.group("a", 5), r.group("b", 2)
	r.wantAdvanced("of two keys", repaired(), a[0], b[0])
	r.wantAdvanced("again", repaired())
	r.exec(`DELETE FROM events_v2 WHERE id = ANY ($1)`, []eventqueue.EventID{a[0], a[1], b[0], b[1]})
	r.wantAdvanced("after deletions", repaired(), a[2])
	if n := one[int](r, `SELECT count(*) FROM event_groups`); n != 3 {
		t.Errorf("%d places of three events", n)
	}
	// The one that is next has a place in another line than the first of its key.
	r.limit(operate.ConcurrencyLimit{Canvas: canvas, Max: 1})
	free := r.insert(event(), event())
	r.wantAdvanced("of the canvas", r.advanced(nil, free), free[0])
	r.exec(`DELETE FROM events_v2 WHERE id = $1`, free[0])
	r.wantAdvanced("of the canvas", repaired(), free[1])
}

// TestRequeuedEventStaysInItsGroup: it may run now, but not before others.
func TestRequeuedEventStaysInItsGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.group("a", 2)
	r.wantAdvanced("at first", r.advanced(nil, ids), ids[0])
	r.wantAdvanced("while it is put off", r.end(r.claim(ids[0]), machine.RetryAllowed, time.Hour, false))
	if _, err := r.store.Requeue(ctx, ids); err != nil {
		t.Fatal(err)
	}
	if first, second := r.label(ids[0]), r.label(ids[1]); first != machine.Claimed || second != machine.NotItsTurn {
		t.Errorf("the first: %s, the second: %s", first, second)
	}
}

// TestUniqueEventTakesOnePlace: the repeat of its key has none, also in a batch
// whose other events rely on each other.
func TestUniqueEventTakesOnePlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unique, plain := event(), event()
	unique.OrderingKey, unique.UniqueKey, plain.OrderingKey = "a", "u", "a"
	ids := r.insert(unique, plain, unique, plain)
	if ids[0] != ids[2] {
		t.Fatalf("one key, two events: %v", ids)
	}
	if places, silent := one[int](r, `SELECT count(*) FROM event_groups`), ids[1]; places != 3 {
		t.Errorf("%d places of three events, silent %s", places, silent)
	}
	r.wantAdvanced("at first", r.advanced(nil, ids[:1]), ids[0])
	r.wantAdvanced("then", r.end(r.claim(ids[0]), machine.ExecutesToCompletion, 0, false), ids[1])
}

// TestMoreGroupsThanOneCallAdvance: more than one call of the database takes.
func TestMoreGroupsThanOneCallAdvance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const keys = 2*worker.MaxGrouped + 10
	var events []eventqueue.NewEvent
	for k := range keys {
		e := event()
		e.OrderingKey = fmt.Sprint(k)
		events = append(events, e, e, e)
	}
	ids := r.insert(events...)
	if n := len(r.advanced(nil, ids)); n != keys {
		t.Errorf("it is the turn of %d events of %d keys", n, keys)
	}
	limits, err := operate.NewConcurrencyLimits(r.store, r.queue(memnotify.New(memnotify.Config{})))
	if err != nil {
		t.Fatal(err)
	}
	every := operate.ConcurrencyLimit{Canvas: canvas, EveryKey: true, Max: 2}
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
		if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE group_state = 2`); n != most*keys {
			t.Errorf("it is the turn of %d events of %d keys with a limit of %d", n, keys, most)
		}
	}
}
