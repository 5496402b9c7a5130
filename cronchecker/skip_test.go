package cronchecker

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
)

// skipping adds a definition of every minute that skips slots, and that began a while ago.
func (r *rig) skipping(name string, missed Missed, skips Skips, ago time.Duration) Definition {
	r.Helper()
	d, err := r.definitions.Add(r.ctx, NewDefinition{Canvas: canvasA, Name: name, Schedule: "every minute", Missed: missed, Skips: skips}, true)
	if err != nil {
		r.Fatal(err)
	}
	if d.Skips != skips {
		r.Fatalf("%+v is not what was set", d.Skips)
	}
	return r.backdate(d, ago)
}

// again has the newest slot of a definition be due once more, as if it came now.
func (r *rig) again() {
	r.Helper()
	r.exec(`DELETE FROM cron_records r WHERE slot = (SELECT max(slot) FROM cron_records WHERE cron_id = r.cron_id)`)
}

func (r *rig) newest(d Definition) Record {
	r.Helper()
	records, err := r.definitions.Records(r.ctx, []CronID{d.ID}, 1)
	if err != nil || len(records[d.ID]) != 1 {
		r.Fatalf("%+v, %v, want a record", records, err)
	}
	return records[d.ID][0]
}

// rules pauses, or lifts the pause of, the events of a definition.
func (r *rig) pause(name string, on bool) {
	r.Helper()
	store, scope := pgstore.New(r.pool), eventqueue.Scope{Canvas: canvasA, Module: Module, Name: name}
	var err error
	if on {
		_, err = store.AddRule(r.ctx, operate.RuleOf(operate.PauseRule, scope))
	} else {
		_, err = store.LiftRule(r.ctx, operate.LiftOf(operate.PauseRule, scope))
	}
	if err != nil {
		r.Fatal(err)
	}
}

// TestSlotIsSkippedWhilePaused: it is recorded as skipped, stays without an event when the pause is lifted, and others go on.
func TestSlotIsSkippedWhilePaused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	skips := r.skipping("skips", MissedLatest, Skips{SkipIfPaused: true}, 90*time.Second)
	waits := r.skipping("waits", MissedLatest, Skips{}, 90*time.Second)
	r.pause("skips", true)
	r.pause("waits", true)
	if result := r.check(); result.Emitted != 2 {
		t.Errorf("%+v, want both slots recorded", result)
	}
	if got := r.newest(skips); got.Skipped != SkippedPaused || got.Event != 0 {
		t.Errorf("the slot is recorded as %+v, want skipped", got)
	}
	if got := r.newest(waits); got.Skipped != "" || got.Event == 0 {
		t.Errorf("the other slot is recorded as %+v, want an event", got)
	}
	r.pause("skips", false)
	slot := r.newest(skips).Slot
	r.check()
	if got := r.newest(skips); got.Slot.Equal(slot) && got.Event != 0 {
		t.Errorf("the slot got an event late: %+v", got)
	}
	r.again()
	r.check()
	if got := r.newest(skips); got.Skipped != "" || got.Event == 0 {
		t.Errorf("a slot after the pause is recorded as %+v, want an event", got)
	}
}

// TestSlotIsSkippedWhileAnEarlierOneRuns: while an event of the definition waits or runs, and no more when it has ended.
func TestSlotIsSkippedWhileAnEarlierOneRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d := r.skipping("alone", MissedLatest, Skips{SkipIfRunning: true}, 90*time.Second)
	other := r.skipping("other", MissedLatest, Skips{SkipIfRunning: true}, 90*time.Second)
	r.check()
	if got := r.newest(d); got.Event == 0 {
		t.Fatalf("%+v, want an event", got)
	}
	r.exec(`DELETE FROM events_v2 WHERE name = 'other'`)
	r.again()
	r.check()
	if got := r.newest(d); got.Skipped != SkippedRunning || got.Event != 0 {
		t.Errorf("beside a waiting event: %+v, want skipped", got)
	}
	if got := r.newest(other); got.Skipped != "" {
		t.Errorf("%+v: only an event of another definition waits", got)
	}
	r.exec(`UPDATE events_v2 SET locked_at = now()`)
	r.again()
	r.check()
	if got := r.newest(d); got.Skipped != SkippedRunning {
		t.Errorf("beside a running event: %+v, want skipped", got)
	}
	r.exec(`DELETE FROM events_v2`)
	r.again()
	r.check()
	if got := r.newest(d); got.Skipped != "" || got.Event == 0 {
		t.Errorf("when it has ended: %+v, want an event", got)
	}
}

// TestOneOfSeveralMissedSlotsRunsAtATime: of slots that are due together, the first gets an event, and the others come while it waits.
func TestOneOfSeveralMissedSlotsRunsAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d := r.skipping("alone", MissedAll, Skips{SkipIfRunning: true}, 10*time.Minute)
	if result := r.check(); result.Emitted < 10 {
		t.Errorf("%+v, want ten slots recorded", result)
	}
	var events, skipped int
	if err := r.pool.QueryRow(r.ctx, `SELECT (SELECT count(*) FROM events_v2), (SELECT count(*) FROM cron_records WHERE skipped = 'running' AND event_id = 0)`).Scan(&events, &skipped); err != nil {
		t.Fatal(err)
	}
	if events != 1 || skipped < 9 {
		t.Errorf("%d events and %d skipped, want 1 and the rest", events, skipped)
	}
	if again := r.skipping("alone", MissedAll, Skips{}, time.Minute); again.ID != d.ID {
		t.Errorf("it was replaced by %+v", again)
	}
}
