package pgstore_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/testenv"
)

// TestEditedEventIsNeverEarly (I6): the database counts in microseconds, and what is between two of them becomes the later one.
func TestEditedEventIsNeverEarly(t *testing.T) {
	t.Parallel()
	r := newRigWithClock(t, 0)
	ctx := testenv.Context(t)
	r.exec(`CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT '2030-01-31 09:00Z'::timestamptz $$`)
	now := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	short, long := time.Nanosecond, time.Hour+999*time.Nanosecond
	for _, c := range []struct {
		edit operate.Edit
		want time.Time
	}{
		{operate.Edit{Delay: &short}, now.Add(time.Microsecond)},
		{operate.Edit{Delay: &long}, now.Add(time.Hour + time.Microsecond)},
		{operate.Edit{DelayUntil: now.Add(time.Second + time.Nanosecond)}, now.Add(time.Second + time.Microsecond)},
		{operate.Edit{DelayUntil: now.Add(time.Second)}, now.Add(time.Second)},
	} {
		id := r.insert(event())[0]
		results, err := r.store.Edit(ctx, c.edit, []eventqueue.EventID{id})
		if err != nil || len(results) != 1 || results[0].Result != operate.ChangeDone {
			t.Fatalf("%+v, %v", results, err)
		}
		if due := one[time.Time](r, `SELECT delay_until FROM events_v2 WHERE id = $1`, id); !due.Equal(c.want) {
			t.Errorf("after %+v it is due at %s, want %s", c.edit, due, c.want)
		}
	}
}

// TestEditOfARunningEventNamesItsLock: for how long its lock is still valid, by the longer of the two lock timeouts, and no longer
// than a century.
func TestEditOfARunningEventNamesItsLock(t *testing.T) {
	t.Parallel()
	r := newRigWithClock(t, 0)
	ctx := testenv.Context(t)
	ids := r.insert(event(), event())
	if _, err := r.store.Settings(ctx); err != nil {
		t.Fatal(err)
	}
	r.claim(ids[0])
	r.claim(ids[1])
	r.exec(`CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT '2030-01-31 09:00Z'::timestamptz $$`)
	r.exec(`DELETE FROM events_v2_settings`)
	r.exec(`INSERT INTO events_v2_settings (lock_timeout, lock_timeout_before) VALUES ('10 min', '1 h')`)
	r.exec(`ALTER TABLE events_v2 DROP CONSTRAINT events_v2_lock_expires`)
	r.exec(`UPDATE events_v2 SET locked_at = '2030-01-31 08:59Z' WHERE id = $1`, ids[0])
	r.exec(`UPDATE events_v2 SET locked_at = '200000-01-01 00:00Z' WHERE id = $1`, ids[1])
	now := time.Duration(0)
	for name, refused := range map[string]func(id eventqueue.EventID) (time.Duration, error){
		"Edit": func(id eventqueue.EventID) (time.Duration, error) {
			results, err := r.store.Edit(ctx, operate.Edit{Delay: &now}, []eventqueue.EventID{id})
			return results[0].LockRemaining, err
		},
		"Remove": func(id eventqueue.EventID) (time.Duration, error) {
			results, _, err := r.store.Remove(ctx, []eventqueue.EventID{id}, nil)
			return results[0].LockRemaining, err
		},
		"Requeue": func(id eventqueue.EventID) (time.Duration, error) {
			results, err := r.store.Requeue(ctx, []eventqueue.EventID{id})
			return results[0].LockRemaining, err
		},
	} {
		if left, err := refused(ids[0]); err != nil || left != 59*time.Minute {
			t.Errorf("%s: the lock is valid for %s more, %v; want 59 minutes", name, left, err)
		}
		if left, err := refused(ids[1]); err != nil || left != 876000*time.Hour {
			t.Errorf("%s: the lock of a row of any year is valid for %s more, %v", name, left, err)
		}
	}
}
