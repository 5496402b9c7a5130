package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/keymode"
	"eventsv2/internal/priority"
	"eventsv2/test/testenv"
)

// of returns an event of a priority.
func of(p string) eventqueue.NewEvent {
	e := event()
	e.Priority = p
	return e
}

// priorityOf is what the row of an event has.
func (r *rig) priorityOf(id eventqueue.EventID) string {
	r.t.Helper()
	return one[string](r, `SELECT coalesce(priority::text, 'normal') FROM events_v2 WHERE id = $1`, int64(id))
}

// emitWays are events that take each of the statements of an emit.
func emitWays() map[string]func(e *eventqueue.NewEvent) {
	return map[string]func(e *eventqueue.NewEvent){
		"at once":        func(*eventqueue.NewEvent) {},
		"delayed":        func(e *eventqueue.NewEvent) { e.Delay = time.Second },
		"ordered":        func(e *eventqueue.NewEvent) { e.OrderingKey = "order " + e.Priority },
		"unique":         func(e *eventqueue.NewEvent) { e.UniqueKey = "key " + e.Priority },
		"unique, waits":  func(e *eventqueue.NewEvent) { e.UniqueKey, e.UniqueMode = "start "+e.Priority, keymode.UntilStart },
		"unique, orders": func(e *eventqueue.NewEvent) { e.UniqueKey, e.OrderingKey = "both "+e.Priority, "both "+e.Priority },
	}
}

// TestEmittedEventsHaveTheirPriority: whichever statement inserts them. What is low is left to the relay.
func TestEmittedEventsHaveTheirPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for way, change := range emitWays() {
		for _, mode := range []eventqueue.NotifyMode{eventqueue.NotifyModeSelf, eventqueue.NotifyModeRelay, eventqueue.NotifyModeLater} {
			var events []eventqueue.NewEvent
			for _, p := range append(priority.All(), "") {
				e := of(p)
				e.Name = fmt.Sprint(mode) // each has keys of its own
				change(&e)
				if e.UniqueKey != "" {
					e.UniqueKey += fmt.Sprint(mode)
				}
				if e.OrderingKey != "" {
					e.OrderingKey += fmt.Sprint(mode)
				}
				events = append(events, e)
			}
			inserted, err := r.store.Insert(testenv.Context(t), nil, events, mode)
			if err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			for i, row := range inserted {
				want := events[i].Priority
				if want == "" {
					want = priority.Normal
				}
				if got := r.priorityOf(row.ID); got != want {
					t.Errorf("%s: an event emitted with the priority %q has %s", way, events[i].Priority, got)
				}
				mustNotify := mode == eventqueue.NotifyModeSelf && want != priority.Low
				pending := one[bool](r, `SELECT notified_at IS NULL FROM events_v2 WHERE id = $1`, int64(row.ID))
				if row.MustNotify != mustNotify || pending == mustNotify {
					t.Errorf("%s, mode %d, %s: the emitter notifies: %t, pending: %t", way, mode, want, row.MustNotify, pending)
				}
			}
		}
	}
}

// TestRepeatKeepsThePriorityOfTheFirst emit of a key.
func TestRepeatKeepsThePriorityOfTheFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, mode := range keymode.Modes() {
		first, second := of(priority.Low), of(priority.High)
		for _, e := range []*eventqueue.NewEvent{&first, &second} {
			e.UniqueKey, e.UniqueMode = mode, mode
		}
		id := r.insert(first)[0]
		if again := r.insert(second)[0]; again != id {
			t.Fatalf("%s: event %d is emitted beside %d", mode, again, id)
		}
		if got := r.priorityOf(id); got != priority.Low {
			t.Errorf("%s: after a repeat the event is %s", mode, got)
		}
	}
}

// TestClaimedEventHasItsPriority, beside everything else that its emitter gave it.
func TestClaimedEventHasItsPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, p := range []string{priority.High, priority.Low, ""} {
		e := of(p)
		e.Attributes = map[string]string{"tenant": "a"}
		id := r.insert(e)[0]
		if got := r.look(id)[id].Event; got.Priority != p || got.Attributes["tenant"] != "a" {
			t.Errorf("an event emitted with the priority %q is claimed with %q and %v", p, got.Priority, got.Attributes)
		}
	}
}

// due takes what is due and returns the priorities of it, in the order of the answer.
func (r *rig) due(limit int) (priorities []string) {
	r.t.Helper()
	taken, err := r.store.TakeDue(testenv.Context(r.t), 0, limit, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range taken {
		priorities = append(priorities, r.priorityOf(n.Event))
	}
	return priorities
}

// insertWaiting inserts events of a priority whose notifications wait for a relay, of several canvases.
func (r *rig) insertWaiting(p string, n int) {
	r.t.Helper()
	events := slices.Repeat([]eventqueue.NewEvent{of(p)}, n)
	for i := range events {
		events[i].Canvas = numbered(i % 3)
	}
	if _, err := r.store.Insert(testenv.Context(r.t), nil, events, eventqueue.NotifyModeRelay); err != nil {
		r.t.Fatal(err)
	}
}

// TestHighPriorityIsTakenBeforeABacklog that was there before, also while the store goes from canvas to canvas.
func TestHighPriorityIsTakenBeforeABacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.insertWaiting("", 300)
	r.due(50) // that there are more is known behind it
	for range 3 {
		r.insertWaiting(priority.High, 5)
		got := r.due(50)
		if high := count(got, priority.High); high != 5 || len(got) != 50 {
			t.Errorf("of a page of %d, %d are of high priority, want 5 of 50", len(got), high)
		}
	}
}

// TestHighPriorityHoldsUpNobody (I20): of a flood of one canvas pages have half, and events of other canvases, of
// high priority and of none, come soon.
func TestHighPriorityHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 50} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			flood := slices.Repeat([]eventqueue.NewEvent{of(priority.High)}, 2000)
			other, normal := of(priority.High), of("")
			other.Canvas, normal.Canvas = numbered(1), numbered(2)
			for _, events := range [][]eventqueue.NewEvent{flood, {normal, normal, normal}, {other}} {
				if _, err := r.store.Insert(testenv.Context(t), nil, events, eventqueue.NotifyModeRelay); err != nil {
					t.Fatal(err)
				}
			}
			served := func(c eventqueue.CanvasID) int {
				return one[int](r, `SELECT count(*) FROM events_v2 WHERE canvas_id = $1 AND notified_at IS NOT NULL`, [16]byte(c))
			}
			for range 6 {
				r.due(limit)
			}
			if high, normals := served(numbered(1)), served(numbered(2)); high != 1 || normals < 2 {
				t.Errorf("after six pages %d of 1 high ones of another canvas are published, and %d of 3 normal ones", high, normals)
			}
		})
	}
}

// TestPrioritiesAreSeenBesideRowsOfOthers: whatever another transaction holds, the same call takes what has a priority.
func TestPrioritiesAreSeenBesideRowsOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.insertWaiting("", 3)
	r.insertWaiting(priority.High, 1)
	r.insertWaiting(priority.Low, 1)
	tx, err := r.pool.Begin(testenv.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(testenv.Context(t))) }()
	if _, err := tx.Exec(testenv.Context(t), `SELECT FROM events_v2 WHERE priority IS NULL FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if got := r.due(10); !slices.Equal(got, []string{priority.High, priority.Low}) {
		t.Errorf("%v are taken", got)
	}
}

// TestLowPriorityHasAShareOfTheRelay: behind a backlog that the relay does not get through, a tenth, whatever the
// size of its pages.
func TestLowPriorityHasAShareOfTheRelay(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 5, 50} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.insertWaiting("", 20*limit+300)
			r.insertWaiting(priority.Low, 300)
			var all []string
			for len(all) < 20*limit+60 {
				got := r.due(limit)
				if len(got) == 0 {
					t.Fatal("a page has nothing")
				}
				all = append(all, got...)
				r.exec(`UPDATE events_v2 SET attempts = 1, locked_at = now() WHERE notified_at IS NOT NULL AND attempts = 0`)
			}
			if low := count(all, priority.Low); low == 0 || low > len(all)/lowShareLeast {
				t.Errorf("of %d, %d are of low priority", len(all), low)
			}
		})
	}
}

// lowShareLeast: no more than one of so many is of low priority, beside others.
const lowShareLeast = 8

func count(list []string, of string) (n int) {
	for _, p := range list {
		if p == of {
			n++
		}
	}
	return n
}

// TestLowPriorityIsLetGoAFewAtATime: more when those before have begun, or cannot; and twice as many then.
func TestLowPriorityIsLetGoAFewAtATime(t *testing.T) {
	t.Parallel()
	for how, begin := range map[string]string{
		"begun":   `UPDATE events_v2 SET attempts = 1, locked_at = now() WHERE notified_at IS NOT NULL`,
		"deleted": `DELETE FROM events_v2 WHERE notified_at IS NOT NULL`,
		"put off": `UPDATE events_v2 SET delay_until = now() + interval '1 h' WHERE notified_at IS NOT NULL`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.insertWaiting(priority.Low, 200)
			first := len(r.due(100))
			if first == 0 || first > 60 {
				t.Fatalf("%d are let go at first", first)
			}
			if got := r.due(100); len(got) != 0 {
				t.Errorf("%d more are let go while those before wait", len(got))
			}
			r.exec(begin)
			r.later()
			if got := r.due(100); len(got) != 2*first {
				t.Errorf("%d are let go after %d have begun", len(got), first)
			}
		})
	}
}

// later waits until the store looks again at what it has let go.
func (r *rig) later() {
	r.t.Helper()
	testenv.Eventually(r.t, "the store looks again", func() bool { return r.store.LowRest() <= time.Millisecond })
}

// TestWaitingLowPriorityHoldsBackItsOwnOnly: those of its handler on its canvas, for as long as none of them has begun.
func TestWaitingLowPriorityHoldsBackItsOwnOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.insertWaiting(priority.Low, 100)
	r.due(100)
	for _, p := range []string{"", priority.High} {
		r.insertWaiting(p, 3)
	}
	other := of(priority.Low)
	other.Name = "other"
	r.insert(other)
	r.later()
	got := r.due(100)
	slices.Sort(got)
	if want := []string{"high", "high", "high", "low", "normal", "normal", "normal"}; !slices.Equal(got, want) {
		t.Errorf("%v are taken, want %v", got, want)
	}
	if r.store.LowRest() == 0 {
		t.Error("the store looks no more at what it has left")
	}
}

// TestOnlyTheRelayLetsLowPriorityGo: not the emitter after its commit, and not a pause that ends; but who requeues an event
// wants it to run.
func TestOnlyTheRelayLetsLowPriorityGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.insert(of(priority.Low), of(priority.Low))
	if taken, err := r.store.TakePending(testenv.Context(t), ids); err != nil || len(taken) != 0 {
		t.Errorf("an emitter publishes %v, %v", taken, err)
	}
	if _, err := r.store.Requeue(testenv.Context(t), ids[:1]); err != nil {
		t.Fatal(err)
	}
	if taken, err := r.store.TakePending(testenv.Context(t), ids); err != nil || len(taken) != 1 || r.priorityOf(ids[0]) != priority.Normal {
		t.Errorf("after a requeue %v are published, %v; it is %s", taken, err, r.priorityOf(ids[0]))
	}
}

// TestRelayRestsWhenNothingOfLowPriorityIsLeft (I12).
func TestRelayRestsWhenNothingOfLowPriorityIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.insertWaiting(priority.Low, 1)
	r.due(10)
	if rest := r.store.LowRest(); rest != 0 {
		t.Errorf("the relay looks again in %s where nothing is left", rest)
	}
}

// TestRunnablePriorityFindsItsOwn, behind a backlog of others, and reads no more because of it.
func TestRunnablePriorityFindsItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	find := func(p string) (ids []eventqueue.EventID) {
		t.Helper()
		events, next, err := r.store.RunnablePriority(testenv.Context(t), p, eventqueue.Scope{}, 32)
		if err != nil || next != (eventqueue.Scope{}) {
			t.Fatalf("the search ends at %v, %v", next, err)
		}
		for _, e := range events {
			ids = append(ids, e.ID)
		}
		return ids
	}
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off)`)
	r.insert(slices.Repeat([]eventqueue.NewEvent{event()}, 5000)...)
	late, held, claimed := of(priority.High), of(priority.High), of(priority.High)
	late.Delay, held.Name = time.Hour, "paused"
	other := r.insert(late, held, claimed, of(priority.Low))
	r.claim(other[2])
	r.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name) VALUES ('block', $1, 'WORKER', 'paused')`, [16]byte(canvas))
	want := r.insert(of(priority.High), of(priority.High))
	reads := func() int {
		r.flush()
		return one[int](r, `SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'events_v2'`)
	}
	before := reads()
	if got := find(priority.High); !slices.Equal(got, want) {
		t.Errorf("of high priority %v are found, want %v", got, want)
	}
	if got := find(priority.Low); !slices.Equal(got, other[3:]) {
		t.Errorf("of low priority %v are found, want %v", got, other[3:])
	}
	if n := reads() - before; n > 100 {
		t.Errorf("two searches beside 5000 others read %d rows", n)
	}
}
