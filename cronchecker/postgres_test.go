package cronchecker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

func TestMissedSlotsFollowTheirPolicy(t *testing.T) {
	t.Parallel()
	hourly := func(t *testing.T) Schedule { return mustParse(t, "every hour", "") }

	t.Run("latest", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		d := r.add(canvasA, "report", "every hour", "", 10*time.Hour)
		result := r.check()
		latest, _ := hourly(t).Latest(d.StartsAt, result.Now)
		r.wantSlots(latest)
		if result.Definitions != 1 || result.Due != 1 || result.Emitted != 1 || result.More {
			t.Errorf("got %+v", result)
		}
		e := r.emissions()[0]
		if e.Canvas != canvasA || e.Name != "report" {
			t.Errorf("emitted %+v", e)
		}
	})
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		d := r.add(canvasA, "report", "every hour", MissedAll, 10*time.Hour)
		result := r.check()
		r.wantSlots(hourly(t).All(d.StartsAt, result.Now, 100)...)
		if result.Emitted != 10 {
			t.Errorf("got %+v", result)
		}
	})
	t.Run("none, too late", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		// The slot two days from now minus a week is always days ago.
		soon := time.Now().UTC().AddDate(0, 0, 2).Format("Mon")
		r.add(canvasA, "report", "0 0 * * "+soon, MissedNone, 30*24*time.Hour)
		if result := r.check(); result.Due != 0 {
			t.Errorf("got %+v", result)
		}
		r.wantSlots()
	})
	t.Run("none, in time", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.add(canvasA, "report", "every minute", MissedNone, time.Hour)
		result := r.check()
		r.wantSlots(result.Now.Truncate(time.Minute))
	})
}

// TestRecordedSlotIsNotEmittedAgain (I10): what is recorded is not due again.
func TestRecordedSlotIsNotEmittedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(canvasA, "report", "every day", MissedAll, 100*24*time.Hour)
	if result := r.check(); result.Emitted != 100 {
		t.Fatalf("got %+v", result)
	}
	if result := r.check(); result.Due != 0 {
		t.Errorf("the second time: %+v", result)
	}
}

// TestCheckContinuesBeyondOneBatch has more missed slots than a pass takes.
func TestCheckContinuesBeyondOneBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d := r.add(canvasA, "tick", "every minute", MissedAll, 2500*time.Minute)
	other := r.add(canvasB, "tock", "every hour", MissedAll, 10*time.Hour)
	first := r.check()
	if first.Emitted != 1010 || !first.More {
		t.Fatalf("got %+v", first)
	}
	last := first
	for last.More {
		last = r.check()
	}
	want := mustParse(t, "every minute", "").All(d.StartsAt, last.Now, 10_000)
	want = append(want, mustParse(t, "every hour", "").All(other.StartsAt, last.Now, 100)...)
	r.wantSlots(want...)
}

// TestConcurrentCheckersEmitEachSlotOnce (I10) has eight of them over the same due slots.
func TestConcurrentCheckersEmitEachSlotOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const crons, hours, checkers = 30, 60, 8
	for i := range crons {
		r.add(canvasA, string(rune('a'+i)), "every hour", MissedAll, hours*time.Hour)
	}
	var total int
	var mu sync.Mutex
	gate := make(chan struct{})
	var group errgroup.Group
	for range checkers {
		checker := r.newChecker(r.store())
		group.Go(func() error {
			<-gate
			for range 3 {
				result, err := checker.Check(r.ctx)
				if err != nil {
					return err
				}
				mu.Lock()
				total += result.Emitted
				mu.Unlock()
			}
			return nil
		})
	}
	close(gate)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	got := r.emissions()
	perCron := map[int64]int{}
	for i, e := range got {
		perCron[e.Cron]++
		if i > 0 && got[i-1].Cron == e.Cron && e.Slot.Sub(got[i-1].Slot) != time.Hour {
			t.Errorf("cron %d: %s follows %s", e.Cron, e.Slot, got[i-1].Slot)
		}
	}
	for id, n := range perCron {
		// One more if the hour ended during the test.
		if n < hours || n > hours+1 {
			t.Errorf("cron %d has %d events, want %d", id, n, hours)
		}
	}
	if len(perCron) != crons || total != len(got) {
		t.Errorf("%d crons, %d events, the checkers counted %d", len(perCron), len(got), total)
	}
}

// TestEmitIsOneTransaction has the record fail after the event was written.
func TestEmitIsOneTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(canvasA, "report", "every day", MissedAll, 72*time.Hour)
	r.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no records today'; END $$`)
	r.exec(`CREATE TRIGGER refuse BEFORE INSERT ON cron_records FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if result, err := r.checker.Check(r.ctx); err == nil || result.Emitted != 0 {
		t.Fatalf("got %+v, %v", result, err)
	}
	r.wantSlots()
	if published := r.notifier.Stats().Published; published != 0 {
		t.Errorf("%d notifications of events that were rolled back", published)
	}
	r.exec(`DROP TRIGGER refuse ON cron_records`)
	if result := r.check(); result.Emitted != 3 {
		t.Errorf("then %+v", result)
	}
	if published := r.notifier.Stats().Published; published < 3 { // more, if its answer came late
		t.Errorf("%d notifications, want 3", published)
	}
}

// TestCheckSkipsDefinitionsLockedByAnother has a checker that hangs in the middle of a
// transaction: it keeps its own definition and no other.
func TestCheckSkipsDefinitionsLockedByAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	held := r.add(canvasA, "held", "every day", MissedAll, 72*time.Hour)
	r.add(canvasA, "free", "every day", MissedAll, 72*time.Hour)
	tx, err := r.pool.Begin(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := lock(r.ctx, tx, []Slot{held.slot(time.Now())}); err != nil {
		t.Fatal(errors.Join(err, tx.Rollback(r.ctx)))
	}
	result := r.check()
	if err := tx.Rollback(r.ctx); err != nil {
		t.Fatal(err)
	}
	if result.Due != 6 || result.Emitted != 3 {
		t.Errorf("while it hangs: %+v", result)
	}
	if result := r.check(); result.Emitted != 3 {
		t.Errorf("after it: %+v", result)
	}
	if got := r.emissions(); len(got) != 6 {
		t.Errorf("%d events", len(got))
	}
}

// TestEmitChecksAgain: what changed between the load and the emit counts.
func TestEmitChecksAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(r *rig) error
		want   int
	}{
		"nothing":  {func(*rig) error { return nil }, 3},
		"disabled": {func(r *rig) error { return r.definitions.SetEnabled(r.ctx, canvasA, "report", false) }, 0},
		"removed":  {func(r *rig) error { return r.definitions.Remove(r.ctx, canvasA, "report") }, 0},
		"replaced": {func(r *rig) error {
			_, err := r.definitions.Add(r.ctx, NewDefinition{Canvas: canvasA, Name: "report", Schedule: "every week"}, true)
			return err
		}, 0},
		"older records trimmed by an operator": {func(r *rig) error {
			r.check()
			_, err := r.pool.Exec(r.ctx, `WITH old AS (
				DELETE FROM cron_records WHERE slot < (SELECT max(slot) FROM cron_records) RETURNING event_id)
				DELETE FROM events_v2 WHERE id IN (SELECT event_id FROM old)`)
			return err
		}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			d := r.add(canvasA, "report", "every day", MissedAll, 72*time.Hour)
			store := r.store()
			snapshot, err := store.Load(r.ctx)
			if err != nil {
				t.Fatal(err)
			}
			slots, _ := due(snapshot.Definitions[0], mustParse(t, d.Schedule, d.TimeZone), snapshot.Now, 0)
			if len(slots) != 3 {
				t.Fatalf("%d slots are due", len(slots))
			}
			if err := tt.change(r); err != nil {
				t.Fatal(err)
			}
			if emitted, err := store.Emit(r.ctx, slots); err != nil || emitted != tt.want {
				t.Errorf("emitted %d, %v; want %d", emitted, err, tt.want)
			}
		})
	}
}

// skewed is a Store whose database has another time than the program.
type skewed struct {
	Store
	ahead time.Duration
}

func (s *skewed) Load(ctx context.Context) (Snapshot, error) {
	snapshot, err := s.Store.Load(ctx)
	snapshot.Now = snapshot.Now.Add(s.ahead)
	return snapshot, err
}

// TestCheckGoesByTheDatabaseClock: the program's clock decides nothing.
func TestCheckGoesByTheDatabaseClock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d := r.add(canvasA, "report", "every day", MissedAll, time.Minute)
	result, err := r.newChecker(&skewed{r.store(), 10 * 24 * time.Hour}).Check(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.wantSlots(mustParse(t, "every day", "").All(d.StartsAt, result.Now, 100)...)
	if result.Emitted < 10 {
		t.Errorf("got %+v", result)
	}
}

// TestCheckAcrossAClockChange emits for every night of a year in Berlin.
func TestCheckAcrossAClockChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d, err := r.definitions.Add(r.ctx, NewDefinition{
		Canvas: canvasA, Name: "nightly", Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", Missed: MissedAll,
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE cron_definitions SET starts_at = '2024-01-01T00:00:00+01'`)
	result, err := r.newChecker(&skewed{r.store(), time.Until(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))}).Check(r.ctx)
	if err != nil || result.Emitted != 366 {
		t.Fatalf("got %+v, %v", result, err)
	}
	shown := map[string]int{}
	for _, e := range r.emissions() {
		shown[e.Slot.In(mustParse(t, d.Schedule, d.TimeZone).Zone()).Format("15:04 -0700")]++
	}
	if shown["03:00 +0200"] != 1 || shown["02:30 +0100"]+shown["02:30 +0200"] != 365 {
		t.Errorf("got %v", shown)
	}
}

func TestCheckWithoutDefinitionsDoesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	result := r.check()
	if result.Definitions != 0 || result.Broken != 0 || result.Now.IsZero() {
		t.Errorf("got %+v", result)
	}
}

// TestRunEndsWithItsContext waits to be woken and stops the checker.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(canvasA, "report", "every day", MissedLatest, 72*time.Hour)
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.checker.Run(ctx) }()
	deliveries, err := r.notifier.Pull(r.ctx, 10)
	if err != nil || len(deliveries) != 1 || deliveries[0].Canvas != canvasA {
		t.Errorf("pulled %v, %v", deliveries, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
