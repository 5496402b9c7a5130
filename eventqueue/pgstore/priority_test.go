package pgstore_test

import (
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
	for range 3 {
		r.insertWaiting(priority.High, 5)
		got := r.due(50)
		if high := count(got, priority.High); high != 5 || len(got) != 50 {
			t.Errorf("of a page of %d, %d are of high priority, want 5 of 50", len(got), high)
		}
	}
}

// TestLowPriorityHasAShareOfTheRelay: behind a backlog that the relay does not get through, some of each page.
func TestLowPriorityHasAShareOfTheRelay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.insertWaiting("", 300)
	r.insertWaiting(priority.Low, 50)
	if got := r.due(50); count(got, priority.Low) != 0 { // that there are more is known behind it
		t.Errorf("the first page has %d events of low priority", count(got, priority.Low))
	}
	if got := r.due(50); count(got, priority.Low) != 5 || len(got) != 50 {
		t.Errorf("of a page of %d, %d are of low priority, want 5 of 50", len(got), count(got, priority.Low))
	}
}

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
		"begun":     `UPDATE events_v2 SET attempts = 1, locked_at = now() WHERE notified_at IS NOT NULL`,
		"deleted":   `DELETE FROM events_v2 WHERE notified_at IS NOT NULL`,
		"paused":    `INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name) SELECT DISTINCT 'pause'::scheduling_rule_type, canvas_id, module, name FROM events_v2`,
		"put off":   `UPDATE events_v2 SET delay_until = now() + interval '1 h' WHERE notified_at IS NOT NULL`,
		"no worker": `UPDATE events_v2 SET notified_at = now() - interval '11 s' WHERE notified_at IS NOT NULL`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.insertWaiting(priority.Low, 200)
			first := len(r.due(100))
			if first == 0 || first > 20 {
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

// TestWaitingLowPriorityHoldsBackTheRest, if there is a worker for it, whatever else is due.
func TestWaitingLowPriorityHoldsBackTheRest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`INSERT INTO event_workers (number, host, pid, version, handlers) VALUES (1, 'h', 1, 'v', '[{"module": "WORKER", "name": "greet", "modifier": "_"}]')`)
	r.insertWaiting(priority.Low, 100)
	r.due(100)
	r.exec(`UPDATE events_v2 SET notified_at = now() - interval '1 min' WHERE notified_at IS NOT NULL`)
	r.insertWaiting("", 3)
	r.insertWaiting(priority.High, 3)
	r.later()
	if got := r.due(100); len(got) != 6 || count(got, priority.Low) != 0 {
		t.Errorf("%v are taken, want three of normal priority and three of high", got)
	}
	if r.store.LowRest() == 0 {
		t.Error("the store looks no more at what it has left")
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
		events, next, err := r.store.RunnablePriority(testenv.Context(t), p, eventqueue.Scope{})
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
