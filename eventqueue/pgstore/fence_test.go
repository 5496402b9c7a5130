package pgstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// ways are the ways in which a claim can end. The first four delete the row.
var ways = []struct {
	name   string
	label  machine.Label
	retain bool
}{
	{"completed", machine.ExecutesToCompletion, false},
	{"completed and kept", machine.ExecutesToCompletion, true},
	{"failed", machine.RetryTooMany, false},
	{"failed for good", machine.FailedForGood, false},
	{"to be tried again", machine.RetryAllowed, false},
	{"snoozed", machine.Snoozed, false},
	{"released", machine.Released, false},
}

// refuses checks that an end is refused and changes nothing.
func (r *rig) refuses(c worker.Claim, label machine.Label, retain bool) {
	r.t.Helper()
	before := r.mustRow(c.Event)
	if r.complete(c, label, time.Second, retain) {
		r.t.Error("the stale claim was believed")
	}
	r.unchanged(c.Event, before)
}

// unchanged checks that a stale claim has written nothing.
func (r *rig) unchanged(id eventqueue.EventID, before row) {
	r.t.Helper()
	after, exists := r.row(id)
	if !exists {
		r.t.Error("the stale claim ended the event")
		return
	}
	if diff := cmp.Diff(before, after); diff != "" {
		r.t.Errorf("the stale claim changed the row: %s", diff)
	}
	if n := one[int](r, `SELECT count(*) FROM event_log WHERE id = $1`, id); n != 0 {
		r.t.Error("the stale claim wrote history")
	}
}

// TestClaimOfAnotherWorkerWritesNoEnd (I5): another worker took over.
func TestClaimOfAnotherWorkerWritesNoEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			r := &rig{t, r.pool, r.store}
			id := r.insert(event())[0]
			stale := r.claim(id)
			r.expire(id)
			r.claim(id)
			r.refuses(stale, way.label, way.retain)
		})
	}
}

// TestReleasedClaimWritesNoEnd (I5): the token is still the
// row's, but the lock is free and anybody may take it at any moment.
func TestReleasedClaimWritesNoEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			r := &rig{t, r.pool, r.store}
			c := r.claim(r.insert(event())[0])
			if !r.complete(c, machine.Released, 0, false) {
				t.Fatal("the release was refused")
			}
			r.refuses(c, way.label, way.retain)
		})
	}
}

// TestProgressOfAStaleClaimIsNotWritten (I5), and that of a live one is, beside its lock.
func TestProgressOfAStaleClaimIsNotWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.insert(event(), event(), event())
	live, stale, gone := r.claim(ids[0]), r.claim(ids[1]), r.claim(ids[2])
	r.expire(ids[1])
	r.claim(ids[1])
	r.complete(gone, machine.ExecutesToCompletion, 0, false)
	written, err := r.store.WriteProgress(testenv.Context(t), []worker.Claim{live, stale, gone}, []worker.Progress{{Fraction: 0.25, Note: "é"}, {Fraction: 0.5}, {Fraction: 0.75}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(written.Lost)
	if diff := cmp.Diff(worker.WriteResult{Done: ids[:1], Lost: ids[1:]}, written); diff != "" {
		t.Errorf("told: %s", diff)
	}
	if got := one[string](r, `SELECT string_agg(id || ' ' || (progress).attempt || ' ' || (progress).fraction || ' ' || (progress).note, ', ') FROM events_v2 WHERE progress IS DISTINCT FROM NULL`); got != ids[0].String()+" 1 0.25 é" {
		t.Errorf("written: %s", got)
	}
}

// TestRenewingMovesLiveLocksOnly (I4, I5), and tells which are lost.
func TestRenewingMovesLiveLocksOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.insert(event(), event(), event(), event())
	live, stale, back, gone := r.claim(ids[0]), r.claim(ids[1]), r.claim(ids[2]), r.claim(ids[3])
	r.expire(ids[1])
	r.claim(ids[1])
	r.complete(back, machine.Released, 0, false)
	r.complete(gone, machine.ExecutesToCompletion, 0, false)
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '30 s' WHERE locked_at IS NOT NULL`)
	before, others := r.now(), *r.mustRow(ids[1]).LockedAt

	written, err := r.store.Renew(testenv.Context(t), []worker.Claim{live, stale, back, gone})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(written.Lost)
	if diff := cmp.Diff(worker.WriteResult{Done: ids[:1], Lost: ids[1:]}, written); diff != "" {
		t.Errorf("told: %s", diff)
	}
	if at := r.mustRow(ids[0]).LockedAt; at == nil || at.Before(before) {
		t.Errorf("the live lock was not renewed: %v", at)
	}
	if at := r.mustRow(ids[1]).LockedAt; at == nil || !at.Equal(others) {
		t.Errorf("the lock of another was moved from %s to %v", others, at)
	}
	if at := r.mustRow(ids[2]).LockedAt; at != nil {
		t.Errorf("a free event was locked at %s", at)
	}
}

// TestRenewalSkipsLockedRows: a handler that completes its event in a long
// transaction must not let the locks of the others expire.
func TestRenewalSkipsLockedRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.claim(r.insert(event())[0])
	handler := r.begin()
	handler.lock(c.Event)
	r.returns("Renew", func(ctx context.Context) {
		written, err := r.store.Renew(ctx, []worker.Claim{c})
		if err != nil || len(written.Done)+len(written.Lost) != 0 {
			t.Errorf("told of a row that was being written: %+v, %v", written, err)
		}
	})
	handler.end(`ROLLBACK`)
}

// TestEndDoesNotOvertakeAClaim (I5, I15): another worker is taking the event
// over and has not committed yet. The end does not wait until it has, and is not
// written.
func TestEndDoesNotOvertakeAClaim(t *testing.T) {
	t.Parallel()
	newRig(t).inForms(func(r *rig, f form) {
		for _, w := range writes(f) {
			r.t.Run(w.name, func(t *testing.T) {
				r := &rig{t, r.pool, r.store}
				stale := r.claim(r.insert(event())[0])
				r.expire(stale.Event)
				worker := r.begin()
				worker.claim(stale.Event)
				taken, _ := r.rowIn(worker.conn, stale.Event)
				r.returns("the end", func(ctx context.Context) {
					written, err := w.do(ctx, r, f, stale)
					if err != nil || len(written.Done)+len(written.Lost) != 0 {
						t.Errorf("told of a row that was being written: %+v, %v", written, err)
					}
				})
				worker.end(`COMMIT`)
				r.unchanged(stale.Event, taken)
			})
		}
	})
}

// TestSnoozesAreCounted (I9) until a failed attempt, and by nothing else.
func TestSnoozesAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.insert(event())[0]
	for i, c := range []struct {
		before int
		label  machine.Label
	}{
		{0, machine.Snoozed}, {1, machine.Snoozed}, {2, machine.Released}, {2, machine.OverLimit}, {2, machine.Snoozed}, {3, machine.RetryAllowed},
		{0, machine.Snoozed}, {1, machine.Released},
	} {
		found, err := r.store.Claim(testenv.Context(t), []eventqueue.EventID{id}, handlers, 0)
		if err != nil || len(found) != 1 || !found[0].Facts.Claimed {
			t.Fatalf("claim %d: %+v, %v", i, found, err)
		}
		if found[0].Snoozes != c.before {
			t.Errorf("before its end %d (%s) the event has been snoozed %d times, want %d", i, c.label, found[0].Snoozes, c.before)
		}
		if !r.complete(worker.Claim{Event: id, Attempt: found[0].Attempt}, c.label, 0, false) {
			t.Fatalf("%s was refused", c.label)
		}
	}
	// As often as the column can hold.
	r.exec(`UPDATE events_v2 SET snoozes = 32767`)
	r.complete(r.claim(id), machine.Snoozed, 0, false)
	if n := one[int](r, `SELECT snoozes FROM events_v2`); n != 32767 {
		t.Errorf("one snooze more than can be counted makes %d", n)
	}
}

// TestUnfinishedEventIsLeftReadyToRun (I1, I6, I9, I11) has every end that does not
// complete its event.
func TestUnfinishedEventIsLeftReadyToRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const short, long = 1900*time.Millisecond + time.Nanosecond, 2 * time.Hour
	for _, c := range []struct {
		label   machine.Label
		delay   time.Duration
		retries int
		pending bool // the notification cannot wait for so long
	}{
		{machine.RetryAllowed, short, 1, false},
		{machine.RetryAllowed, long, 1, true},
		{machine.Snoozed, short, 0, false},
		{machine.Snoozed, long, 0, true},
		{machine.Released, 0, 0, false},
	} {
		id := r.insert(event())[0]
		claim, before := r.claim(id), r.now()
		if !r.complete(claim, c.label, c.delay, false) {
			t.Fatalf("%s was refused", c.label)
		}
		got := r.mustRow(id)
		if got.Retries != c.retries || got.LockedAt != nil || got.Attempts != 1 {
			t.Errorf("%s left %+v, want %d retries and no lock", c.label, got, c.retries)
		}
		if c.label != machine.Released && got.DelayUntil.Before(before.Add(c.delay)) {
			t.Errorf("%s for %s at %s is due at %s already", c.label, c.delay, before, got.DelayUntil)
		}
		if (got.NotifiedAt == nil) != c.pending {
			t.Errorf("%s for %s left notified_at %v", c.label, c.delay, got.NotifiedAt)
		}
	}
	id := r.insert(event())[0]
	r.complete(r.claim(id), machine.RetryTooMany, 0, false)
	if got := one[string](r, `SELECT status || ' ' || value || ' ' || last_error FROM event_log WHERE id = $1`, id); got != "FAILED 1 no luck" {
		t.Errorf("event_log says %q", got)
	}
}
