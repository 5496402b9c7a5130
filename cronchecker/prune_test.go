package cronchecker

import (
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// TestCheckDeletesOldRecords: records older than RecordsFor go when their definition is recorded again, except the newest,
// also when it is old; without RecordsFor all stay.
func TestCheckDeletesOldRecords(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		recordsFor time.Duration
		want       int // of five days, the last of them today
	}{
		"for ever":      {0, 5},
		"for some days": {72 * time.Hour, 3},
		"the newest":    {time.Nanosecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			d := r.add(canvasA, "report", "every day", MissedAll, 5*24*time.Hour)
			other := r.add(canvasA, "other", "every day", MissedAll, time.Minute)
			if err := r.definitions.SetEnabled(r.ctx, canvasA, "other", false); err != nil {
				t.Fatal(err)
			}
			for _, id := range []CronID{d.ID, other.ID} {
				if _, err := r.pool.Exec(r.ctx, `INSERT INTO cron_records (cron_id, slot, event_id, created_at)
					SELECT $1, date_trunc('day', now(), 'UTC') - n * interval '1 day', 1, now() FROM generate_series(1, 4) AS n`, int64(id)); err != nil {
					t.Fatal(err)
				}
			}
			checker := newChecker(t, r.store(), Config{RecordsFor: tt.recordsFor, Logger: testenv.Logger(t)})
			if result, err := checker.Check(r.ctx); err != nil || result.Emitted != 1 {
				t.Fatalf("emitted %+v, %v; want the slot of today", result, err)
			}
			records, err := r.definitions.Records(r.ctx, []CronID{d.ID, other.ID}, 10)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(records[d.ID]); got != tt.want {
				t.Errorf("%d records are left, want %d", got, tt.want)
			}
			if got := len(records[other.ID]); got != 4 {
				t.Errorf("%d records of a definition without a new slot are left, want all 4", got)
			}
			if again, err := checker.Check(r.ctx); err != nil || again.Due != 0 {
				t.Errorf("afterwards %+v, %v: no slot may be due again", again, err)
			}
		})
	}
}

// TestSlotsDoNotWaitForPruning: a slot gets its event also where records cannot be deleted.
func TestSlotsDoNotWaitForPruning(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(canvasA, "report", "every day", MissedAll, 3*24*time.Hour)
	if _, err := r.pool.Exec(r.ctx, `
		CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'records are kept'; END $$;
		CREATE TRIGGER keep BEFORE DELETE ON cron_records FOR EACH ROW EXECUTE FUNCTION keep()`); err != nil {
		t.Fatal(err)
	}
	result, err := newChecker(t, r.store(), Config{RecordsFor: time.Nanosecond, Logger: testenv.Logger(t)}).Check(r.ctx)
	if err != nil || result.Emitted != 3 || result.Broken != 0 {
		t.Errorf("%+v, %v; want 3 slots emitted", result, err)
	}
}
