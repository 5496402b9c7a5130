package pgstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/testenv"
)

// knowing is a worker that has the handlers of these events.
const knowing = 41

// explainedRig has a live worker, and a reader.
type explainedRig struct {
	*rig
	reader *inspect.Reader
}

func newExplainedRig(t *testing.T) explainedRig {
	t.Helper()
	r := newRig(t)
	as := registration(knowing)
	as.Handlers = mayRunHandlers()
	reserve, _, stop := r.holdsAs(as)
	t.Cleanup(func() { stop(); reserve.Close() })
	return explainedRig{r, inspect.New(r.pool)}
}

// tries has a worker try an event, as one that gets its notification: an event that waits arrives at its groups, and is
// claimed if these admit it. It returns the label at which the worker stops.
func (r explainedRig) tries(id eventqueue.EventID) machine.Label {
	r.t.Helper()
	for arrived := false; ; arrived = true {
		found, err := r.store.Claim(testenv.Context(r.t), []eventqueue.EventID{id}, mayRunHandlers(), eventqueue.ClaimID(knowing)<<32)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(found) == 0 {
			return machine.EventMissing
		}
		_, label := machine.DecideClaim(found[0].Facts)
		if label != machine.NotItsTurn || arrived {
			return label
		}
		if !slices.Contains(r.advanced(nil, []eventqueue.EventID{id}), id) {
			return label
		}
	}
}

// agree explains an event, and has a worker try it.
func (r explainedRig) agree(what string, id eventqueue.EventID) inspect.Explanation {
	r.t.Helper()
	e, err := r.reader.Explain(testenv.Context(r.t), id)
	if err != nil {
		r.t.Fatal(err)
	}
	said, tried := e.Because().Label, r.tries(id)
	if said == machine.IsLocked && tried != said && len(e.Reasons) > 1 { // the lock is explained first
		said = e.Reasons[1].Label
	}
	if said != tried {
		r.t.Errorf("%s: event %s is explained as %s (%s), and a worker that tries it says %s", what, id, said, e.Because().Why, tried)
	}
	return e
}

// wants is agree with a label and a part of the sentence.
func (r explainedRig) wants(what string, id eventqueue.EventID, label machine.Label, why string) {
	r.t.Helper()
	if because := r.agree(what, id).Because(); because.Label != label || !strings.Contains(because.Why, why) {
		r.t.Errorf("%s: %s, %s; want %s with %q", what, because.Label, because.Why, label, why)
	}
}

// TestExplainAgreesWithClaims asks both about every event of TestStatementsAgreeOnRunnableEvents.
func TestExplainAgreesWithClaims(t *testing.T) {
	t.Parallel()
	r := newExplainedRig(t)
	ids, _ := insertMayRun(t, r.store)
	labels := map[machine.Label]int{}
	for _, id := range ids {
		labels[r.agree("a row", id).Because().Label]++
	}
	for _, label := range []machine.Label{machine.Claimed, machine.IsLocked, machine.Paused, machine.Blocked, machine.DelayNotYet, machine.NotItsTurn} {
		if labels[label] == 0 {
			t.Errorf("no event is explained as %s: %v", label, labels)
		}
	}
	other := event()
	other.Name = "unknown"
	r.wants("of a handler that no worker has", r.insert(other)[0], machine.HandlerUnknown, "No live worker")
	r.wants("one that never was", 1<<40, machine.EventMissing, "neither in the queue")
}

// free is an event that the worker can run.
func free(of eventqueue.CanvasID, orderingKey string) eventqueue.NewEvent {
	e := event()
	e.Canvas, e.Name, e.OrderingKey = of, "free", orderingKey
	return e
}

// TestExplainAgreesWithClaimsOnOrder: of events that no worker has tried yet, of one that has to join its group, and behind
// one that runs.
func TestExplainAgreesWithClaimsOnOrder(t *testing.T) {
	t.Parallel()
	r := newExplainedRig(t)
	ids := r.insert(free(canvas, "a"), free(canvas, "a"), free(canvas, "a"), free(another, "a"))
	r.wants("not the first, before any was tried", ids[1], machine.NotItsTurn, "behind event "+ids[0].String())
	r.wants("the first", ids[0], machine.Claimed, "Nothing keeps it")
	r.wants("behind one that runs", ids[2], machine.NotItsTurn, "behind event "+ids[0].String())
	r.wants("of another canvas", ids[3], machine.Claimed, "Nothing keeps it")
	r.exec(`DELETE FROM events_v2 WHERE id = $1`, ids[0]) // as no part of the queue does
	r.wants("the next, of a group whose place is lost", ids[1], machine.NotItsTurn, "in which no event may run at the moment")
	later := free(canvas, "b")
	later.Delay = time.Hour
	ids = r.insert(later, later)
	r.wants("not due", ids[0], machine.DelayNotYet, "It is due")
	r.exec(`UPDATE events_v2 SET delay_until = now() - interval '1 s' WHERE id = ANY ($1)`, ids)
	r.wants("due by now, and yet to join", ids[0], machine.Claimed, "Nothing keeps it")
	r.wants("due by now, and behind it", ids[1], machine.NotItsTurn, "behind event "+ids[0].String())
}

// TestExplainAgreesWithClaimsOnLimits: with slots free, full, and those of events that a delay holds back.
func TestExplainAgreesWithClaimsOnLimits(t *testing.T) {
	t.Parallel()
	r := newExplainedRig(t)
	before := r.insert(free(canvas, ""))[0]
	for _, limit := range []operate.ConcurrencyLimit{{Canvas: canvas, Module: key.Module, Name: "free", Max: 2}, {Canvas: another, Max: 1}, {Canvas: another, EveryKey: true, Max: 2}} {
		if _, err := r.store.SetConcurrencyLimit(testenv.Context(t), limit); err != nil {
			t.Fatal(err)
		}
	}
	ids := append([]eventqueue.EventID{before}, r.insert(free(canvas, ""), free(canvas, "a"), free(canvas, ""))...)
	r.wants("from before the limit", ids[0], machine.Claimed, "Nothing keeps it")
	r.wants("into the last slot", ids[1], machine.Claimed, "Nothing keeps it")
	r.wants("no slot is free, and it has a key", ids[2], machine.NotItsTurn, "behind event "+ids[0].String())
	r.wants("no slot is free", ids[3], machine.NotItsTurn, "2 at a time, behind event "+ids[0].String())
	r.exec(`UPDATE events_v2 SET locked_at = NULL, delay_until = now() + interval '1 hour' WHERE id = ANY ($1)`, ids[:2])
	r.wants("in the place of one that is delayed", ids[2], machine.Claimed, "Nothing keeps it")
	r.wants("behind those that took such places", r.insert(free(canvas, ""))[0], machine.NotItsTurn, "behind event "+ids[2].String())

	ids = r.insert(free(another, "k"), free(another, "k"), free(another, ""))
	r.wants("the first of a canvas with one slot", ids[0], machine.Claimed, "Nothing keeps it")
	r.wants("its key has room, and its canvas has none", ids[1], machine.NotItsTurn, "1 at a time, behind event "+ids[0].String())
	r.wants("its canvas has no room", ids[2], machine.NotItsTurn, "behind event "+ids[0].String())
}

// TestExplainAgreesWithClaimsOnLockedRows: a row that another session has locked, or written and not committed, is named
// with that session.
func TestExplainAgreesWithClaimsOnLockedRows(t *testing.T) {
	t.Parallel()
	r := newExplainedRig(t)
	ctx := testenv.Context(t)
	ids := r.insert(free(canvas, ""), free(canvas, ""), free(canvas, ""))
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(ctx) })
	if _, err := tx.Exec(ctx, `SELECT FROM events_v2 WHERE id = $1 FOR UPDATE`, ids[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `UPDATE events_v2 SET value = '2' WHERE id = $1`, ids[1]); err != nil {
		t.Fatal(err)
	}
	r.wants("locked", ids[0], machine.LockClaimFailed, "is writing its row, or has locked it")
	r.wants("written", ids[1], machine.LockClaimFailed, "is writing its row, or has locked it")
	r.wants("neither", ids[2], machine.Claimed, "Nothing keeps it")
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	r.wants("locked no more", ids[0], machine.Claimed, "Nothing keeps it")
}

// TestExplainNamesFullWorkers: a claim would take the event, and no worker has a slot to try it.
func TestExplainNamesFullWorkers(t *testing.T) {
	t.Parallel()
	r := newExplainedRig(t)
	r.exec(`UPDATE event_workers SET slots = 3, busy = 3, hung = 0`)
	r.wants("full", r.insert(free(canvas, ""))[0], machine.Claimed, "all 3 slots of the worker are busy")
}

// TestEventsThatWouldWaitInTheirGroupsAreNotStuck: neither those behind others of their key nor those of a full limit,
// though none has joined its group, since no worker has tried it.
func TestEventsThatWouldWaitInTheirGroupsAreNotStuck(t *testing.T) {
	t.Parallel()
	r := newExplainedRig(t)
	if _, err := r.store.SetConcurrencyLimit(testenv.Context(t), operate.ConcurrencyLimit{Canvas: another, Max: 1}); err != nil {
		t.Fatal(err)
	}
	later := free(canvas, "b")
	later.Delay = time.Hour
	ids := r.insert(free(another, ""), later, later, free(another, ""), free(another, ""), later, free(canvas, ""))
	r.exec(`UPDATE events_v2 SET enqueued_at = now() - interval '2 h', delay_until = now() - interval '1 h', attempts = CASE id WHEN $1 THEN 12 ELSE attempts END`, ids[5])
	for _, first := range ids[:2] {
		if label := r.tries(first); label != machine.Claimed {
			t.Fatalf("the first of its group: %s", label)
		}
	}
	listed := func(limit int) (ids []eventqueue.EventID) {
		found, err := r.reader.Stuck(testenv.Context(t), inspect.Filter{}, inspect.StuckAfter{Unclaimed: time.Minute, Attempts: 10}, 0, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			ids = append(ids, e.ID)
		}
		return ids
	}
	for limit := 1; limit <= 3; limit++ {
		found, err := r.reader.Stuck(testenv.Context(t), inspect.Filter{}, inspect.StuckAfter{Unclaimed: time.Minute, Attempts: 10}, 0, limit)
		if err != nil {
			t.Fatal(err)
		}
		type stuck struct {
			id      eventqueue.EventID
			reasons string
			since   time.Duration
		}
		var got []stuck
		for _, e := range found {
			got = append(got, stuck{e.ID, fmt.Sprint(e.Reasons), e.AsOf.Sub(e.Since).Truncate(time.Hour)})
		}
		want := []stuck{{ids[5], "[repeated]", 2 * time.Hour}, {ids[6], "[unclaimed]", time.Hour}}
		if want = want[:min(limit, len(want))]; !slices.Equal(got, want) {
			t.Errorf("of at most %d, %v are stuck; want %v", limit, got, want)
		}
	}
	r.exec(`DELETE FROM event_workers`)
	if got := listed(10); !slices.Equal(got, ids[5:]) {
		t.Errorf("without a worker, %v are stuck; want %v", got, ids[5:])
	}
	r.exec(`DELETE FROM events_v2 WHERE id = $1`, ids[0]) // as no part of the queue does: no event of its group may run
	if got := listed(10); !slices.Equal(got, ids[3:]) {
		t.Errorf("of a group that is broken, %v are stuck; want %v", got, ids[3:])
	}
}
