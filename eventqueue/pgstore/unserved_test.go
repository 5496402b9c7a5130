package pgstore_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/minutes"
	"eventsv2/test/testenv"
)

// waitingNow counts what is pending.
func (r *rig) waitingNow() maintenance.Waiting {
	r.t.Helper()
	w, err := r.store.CountWaiting(testenv.Context(r.t), eventqueue.Scope{})
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// TestCountPendingFindsUnservedHandlers: those with an event that has been due for a minute,
// without a rule, of which nothing runs and nothing has ended.
func TestCountPendingFindsUnservedHandlers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.waiting("stands", 1, time.Hour)
	r.waiting("young", 1, 30*time.Second)
	r.waiting("paused", 4, 3*time.Hour)
	r.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name) VALUES ('pause', $1, 'M', 'paused')`, [16]byte(minuteOf(1, "").Canvas))
	r.waiting("runs", 2, 2*time.Hour)
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() WHERE id = (SELECT max(id) FROM events_v2)`)
	r.waiting("ends", 1, time.Hour)
	r.handIn(minutes.Counts{Scope: minuteOf(1, "ends"), Retried: 1})
	r.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, completed, failed, retried)
		SELECT date_trunc('minute', clock_timestamp(), 'UTC') - n * interval '1 minute', $1, 'M', 'other', 1, 2, 3 FROM generate_series(1, 2) AS n`,
		[16]byte(minuteOf(2, "").Canvas))

	w := r.waitingNow()
	if len(w.Unserved) != 1 || w.UnservedHandlers != 1 || w.Unserved[0].Scope != minuteOf(1, "stands") || w.Unserved[0].DueFor < time.Hour {
		t.Errorf("nobody runs %+v", w.Unserved)
	}
	if w.Running != 1 || w.Pending != 9 || w.Held != 4 || w.OldestDue < 2*time.Hour || w.OldestDue > 150*time.Minute {
		t.Errorf("waiting are %+v", w)
	}
	// The whole minute before this one is counted, and no other; one may have begun since.
	if sum := w.Completed + w.Failed + w.Retried; sum != 6 && sum != 1 || w.EndedOf == 0 {
		t.Errorf("ended are %+v", w)
	}

	// Runs on canvases beyond the bound of a minute may be of this handler.
	r.handIn(minutes.Counts{Scope: eventqueue.Scope{Module: "M", Name: "stands"}, Completed: 1})
	if w := r.waitingNow(); len(w.Unserved) != 0 {
		t.Errorf("nobody runs %+v, but perhaps on further canvases", w.Unserved)
	}
}

// TestOldestDueEventIsFound: not one that runs, is not due, or waits behind others.
func TestOldestDueEventIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	oldest := func() eventqueue.EventID {
		t.Helper()
		id, modifier, err := r.store.OldestDue(testenv.Context(t), minuteOf(1, "a"))
		if err != nil || id != 0 && modifier != "_" {
			t.Fatalf("OldestDue: %d, %q, %v", id, modifier, err)
		}
		return id
	}
	if id := oldest(); id != 0 {
		t.Errorf("without an event, the oldest is %d", id)
	}
	r.waiting("a", 5, time.Minute)
	r.waiting("b", 1, time.Hour)
	first := one[eventqueue.EventID](r, `SELECT min(id) FROM events_v2`)
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() WHERE id = $1`, first)
	r.exec(`UPDATE events_v2 SET group_state = 1 WHERE id = $1`, first+1)
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '1 hour' WHERE id = $1`, first+2)
	r.exec(`UPDATE events_v2 SET enqueued_at = delay_until - interval '3 hours', delay_until = delay_until - interval '2 hours' WHERE id = $1`, first+4)
	if id := oldest(); id != first+4 {
		t.Errorf("the oldest is %d, not %d", id, first+4)
	}
	r.exec(`DELETE FROM events_v2 WHERE id = $1`, first+4)
	if id := oldest(); id != first+3 {
		t.Errorf("the oldest is %d, not %d", id, first+3)
	}
}

// TestEventsHeldByANarrowRuleAreCounted: of a handler of which a rule holds back some events, those are held
// and the others may stand; of one that a rule of a prefix is about, all are.
func TestEventsHeldByANarrowRuleAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.waiting("mixed", 5, time.Hour)
	r.exec(`UPDATE events_v2 SET modifier = 'slow', enqueued_at = enqueued_at - interval '4 hours', delay_until = delay_until - interval '3 hours'
		WHERE id < (SELECT min(id) + 3 FROM events_v2)`)
	r.waiting("prefixed", 4, 2*time.Hour)
	canvas := [16]byte(minuteOf(1, "").Canvas)
	r.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, modifier, prefix)
		VALUES ('pause', $1, 'M', 'mixed', 'slow', false), ('block', $1, 'M', 'pre', '', true)`, canvas)

	w := r.waitingNow()
	if w.Pending != 9 || w.Held != 3+4 || w.OldestDue < time.Hour || w.OldestDue > 90*time.Minute {
		t.Errorf("waiting are %+v: 7 of 9 must be held, and the oldest of the others be due for an hour", w)
	}
	if len(w.Unserved) != 1 || w.Unserved[0].Scope != minuteOf(1, "mixed") || w.Unserved[0].DueFor > 90*time.Minute {
		t.Errorf("nobody runs %+v", w.Unserved)
	}
	id, modifier, err := r.store.OldestDue(testenv.Context(t), minuteOf(1, "mixed"))
	if err != nil || modifier != "_" {
		t.Errorf("the oldest that stands is event %d with modifier %q, %v; want one that no rule holds back", id, modifier, err)
	}
	// With all of it held back by rules of its modifiers, nobody has to run it.
	r.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, modifier) VALUES ('pause', $1, 'M', 'mixed', '_')`, canvas)
	if w := r.waitingNow(); w.Held != 9 || len(w.Unserved) != 0 || w.OldestDue != 0 {
		t.Errorf("all are held back, and waiting are %+v", w)
	}
}
