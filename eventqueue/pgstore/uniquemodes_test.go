package pgstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// inMode is an event with the key k.
func inMode(mode, value string, delay, maxWait time.Duration) eventqueue.NewEvent {
	e := once("k", 0)
	e.UniqueMode, e.Value, e.Delay, e.MaxWait = mode, []byte(value), delay, maxWait
	return e
}

// TestKeyUntilStartGoesOnWhenTheEventRuns, and comes back to nobody when it fails and waits for its retry.
func TestKeyUntilStartGoesOnWhenTheEventRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.insert(inMode("until_start", "1", 0, 0))[0]
	if again := r.insert(inMode("until_start", "2", 0, 0))[0]; again != first {
		t.Errorf("while event %s waits, the key made event %s", first, again)
	}
	claim := r.claim(first)
	second := r.insert(inMode("until_start", "3", 0, 0))[0]
	if second == first {
		t.Error("while the event runs, the key made no other")
	}
	if !r.complete(claim, machine.RetryAllowed, 0, false) {
		t.Fatal("the claim did not hold")
	}
	if again := r.insert(inMode("until_start", "4", 0, 0))[0]; again != second {
		t.Errorf("while both wait, the key made event %s, want %s", again, second)
	}
	if again := r.insert(inMode("until_end", "5", 0, 0))[0]; again != second {
		t.Errorf("in the mode until_end the key is that of event %s, want %s", again, second)
	}
}

// TestEventIsNotClaimedBeforeTheEmitThatFoundItWaiting has committed: its run sees what that has written.
func TestEventIsNotClaimedBeforeTheEmitThatFoundItWaiting(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"until_start", "replace"} {
		r := newRig(t)
		id := r.insert(inMode(mode, "1", 0, 0))[0]
		tx := r.begin()
		rows, err := r.store.Insert(testenv.Context(t), tx.conn, []eventqueue.NewEvent{inMode(mode, "2", 0, 0)}, eventqueue.NotifyModeLater)
		if err != nil || rows[0].ID != id || !rows[0].Repeat {
			t.Fatalf("%s: %+v, %v", mode, rows, err)
		}
		if f := r.look(id)[id]; f.Facts.Claimed {
			t.Errorf("%s: the event was claimed while the emit was open", mode)
		}
		tx.end(`COMMIT`)
		if f := r.look(id)[id]; !f.Facts.Claimed {
			t.Errorf("%s: the event is not claimed after the commit: %+v", mode, f)
		}
	}
}

// TestReplaceGivesTheNewestValue and time to what waits, until MaxWait after the first emit; what runs keeps its own.
func TestReplaceGivesTheNewestValue(t *testing.T) {
	t.Parallel()
	r := newRigWithClock(t, 0)
	due := func(id eventqueue.EventID) string {
		t.Helper()
		return one[string](r, `SELECT value || ' after ' || extract(epoch FROM date_trunc('second', delay_until - enqueued_at + interval '1 s'))::int / 60 || ' min, '
			|| coalesce((notified_at IS NOT NULL)::text, '') FROM events_v2 WHERE id = $1`, id)
	}
	emit := func(value string, delay time.Duration) eventqueue.Inserted {
		t.Helper()
		rows, err := r.store.Insert(testenv.Context(t), nil, []eventqueue.NewEvent{inMode("replace", value, delay, time.Hour)}, eventqueue.NotifyModeSelf)
		if err != nil {
			t.Fatal(err)
		}
		return rows[0]
	}
	first := emit("1", 5*time.Minute)
	for _, step := range []struct {
		at, delay time.Duration
		value     string
		want      string
		notify    bool
	}{
		{time.Minute, 5 * time.Minute, "2", "2 after 6 min, true", false},    // the notification that is under way is put off
		{2 * time.Minute, 2 * time.Minute, "3", "3 after 4 min, true", true}, // an earlier time needs another one
		{3 * time.Minute, 20 * time.Minute, "4", "4 after 23 min, false", false},
		{20 * time.Minute, 5 * time.Minute, "5", "5 after 25 min, true", true},
		{58 * time.Minute, 5 * time.Minute, "6", "6 after 60 min, true", false},
		{59 * time.Minute, 0, "7", "7 after 59 min, true", true},
	} {
		r.setClock(step.at)
		if got := emit(step.value, step.delay); got.ID != first.ID || !got.Repeat || got.MustNotify != step.notify {
			t.Errorf("%s: %+v, want the event %s, notified: %t", step.value, got, first.ID, step.notify)
		}
		if got := due(first.ID); got != step.want {
			t.Errorf("at %s: %q, want %q", step.at, got, step.want)
		}
	}
	r.claim(first.ID)
	if next := emit("8", 0); next.Repeat || next.ID == first.ID {
		t.Errorf("while the event runs: %+v", next)
	}
	if got := one[string](r, `SELECT value FROM events_v2 WHERE id = $1`, first.ID); got != "7" {
		t.Errorf("the event that runs has the value %s now", got)
	}
}

// TestReplaceWithoutABoundPutsOff what waits, for as long as it is emitted again.
func TestReplaceWithoutABoundPutsOff(t *testing.T) {
	t.Parallel()
	r := newRigWithClock(t, 0)
	for n := range 3 {
		r.setClock(time.Duration(n) * time.Minute)
		id := r.insert(inMode("replace", "1", 5*time.Minute, 0))[0]
		if left := one[float64](r, `SELECT extract(epoch FROM delay_until - clock_timestamp()) FROM events_v2 WHERE id = $1`, int64(id)); left < 290 || left > 300 {
			t.Errorf("emit %d with a delay of 300 s makes the event due in %.0f s", n+1, left)
		}
	}
}

// TestReplaceSparesOtherHandlers: also one of the same batch.
func TestReplaceSparesOtherHandlers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine, other := inMode("replace", "1", 0, 0), inMode("replace", "2", 0, 0)
	other.Name = "other"
	for _, batch := range [][]eventqueue.NewEvent{{mine, other}, {mine}, {other}} {
		_, err := r.store.Insert(testenv.Context(t), nil, batch, eventqueue.NotifyModeSelf)
		if bad := batch[len(batch)-1].Name == "other"; (err != nil) != bad || bad && !strings.Contains(err.Error(), "cannot replace it") {
			t.Errorf("%d events, of %s: %v", len(batch), batch[len(batch)-1].Name, err)
		}
	}
	if got := one[string](r, `SELECT string_agg(name || value, ' ') FROM events_v2`); got != mine.Name+"1" {
		t.Errorf("the events are %s", got)
	}
}

// TestReplaceKeepsThePlaceInAGroup and the time with it, and the wait after a failure.
func TestReplaceKeepsThePlaceInAGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	grouped := inMode("replace", "1", 0, 0)
	grouped.OrderingKey = "o"
	id := r.insert(grouped)[0]
	grouped.Value, grouped.Delay = []byte("2"), time.Hour
	r.insert(grouped)
	const late = `SELECT value || (delay_until > clock_timestamp() + interval '30 min') FROM events_v2 WHERE id = $1`
	if got := one[string](r, late, id); got != "2false" {
		t.Errorf("in its group: %s", got)
	}
	failed := once("f", 0)
	failed.UniqueMode = "replace"
	id = r.insert(failed)[0]
	if !r.complete(r.claim(id), machine.RetryAllowed, time.Hour, false) {
		t.Fatal("the claim did not hold")
	}
	failed.Value = []byte("3")
	if again := r.insert(failed)[0]; again != id {
		t.Errorf("after its failure the event %s became %s", id, again)
	}
	if got := one[string](r, late, id); got != "3true" {
		t.Errorf("after a failure: %s", got)
	}
}

// TestSuccessorTakesOverTheKey of the event that its transaction completes; while an heir of the key beside it is queued,
// that is an error, and not silence.
func TestSuccessorTakesOverTheKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	first := r.insert(once("k", time.Hour))[0]
	end := func(ending eventqueue.EventID, heirs int) (ids []eventqueue.EventID, err error) {
		t.Helper()
		err = r.store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
			if heirs == 0 {
				rows, err := r.store.InsertEnding(ctx, db, ending, []eventqueue.NewEvent{once("k", time.Hour)}, eventqueue.NotifyModeSelf)
				if err != nil {
					return err
				}
				ids = append(ids, rows[0].ID)
			}
			for range heirs {
				rows, err := r.store.Insert(ctx, db, []eventqueue.NewEvent{event()}, eventqueue.NotifyModeSelf)
				if err != nil {
					return err
				}
				ids = append(ids, rows[0].ID)
			}
			if heirs > 0 {
				if err := r.store.PassKey(ctx, db, ending, ids); err != nil {
					return err
				}
			}
			_, err := db.Exec(ctx, `DELETE FROM events_v2 WHERE id = $1`, ending)
			return err
		})
		return ids, err
	}
	second, err := end(first, 0)
	if err != nil || second[0] == first {
		t.Fatalf("the successor is %v, %v", second, err)
	}
	if again := r.insert(once("k", 0))[0]; again != second[0] {
		t.Errorf("the key is that of event %s, want %s", again, second[0])
	}
	heirs, err := end(second[0], 2)
	if err != nil {
		t.Fatal(err)
	}
	if again := r.insert(once("k", 0))[0]; again != second[0] {
		t.Errorf("with heirs the key is that of event %s, want %s", again, second[0])
	}
	if _, err := end(heirs[0], 0); err == nil || !strings.Contains(err.Error(), "has not ended: emit after its end") {
		t.Errorf("a successor beside another heir: %v", err)
	}
	r.runToEnd(heirs[0], machine.ExecutesToCompletion)
	third, err := end(heirs[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	if again := r.insert(once("k", 0))[0]; again != third[0] {
		t.Errorf("after the heirs the key is that of event %s, want %s", again, third[0])
	}
	r.exec(`DELETE FROM events_v2`)
	if _, _, err := r.store.DeleteKeys(ctx, eventqueue.UniqueKey{}, 10); err != nil {
		t.Fatal(err)
	}
	if n := one[int](r, `SELECT (SELECT count(*) FROM unique_keys) + (SELECT count(*) FROM unique_heirs) + (SELECT count(*) FROM unique_expiries)`); n != 0 {
		t.Errorf("%d rows of the key are left", n)
	}
}
