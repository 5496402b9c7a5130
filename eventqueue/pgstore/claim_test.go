package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// TestClaimTakesRunnableEventsOnly asks in one statement about events that must not
// run, each for a reason of its own, and one that may (I4, I6, I7, I16).
func TestClaimTakesRunnableEventsOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	with := func(change func(*eventqueue.NewEvent)) eventqueue.NewEvent { e := event(); change(&e); return e }
	names := []string{"paused", "blocked", "early", "locked", "unknown", "free"}
	ids := r.insert(
		with(func(e *eventqueue.NewEvent) { e.Name = "paused" }),
		with(func(e *eventqueue.NewEvent) { e.Name = "blocked" }),
		with(func(e *eventqueue.NewEvent) { e.Delay = time.Hour }),
		event(),
		with(func(e *eventqueue.NewEvent) { e.Name = "unknown" }),
		event(),
	)
	at := map[string]eventqueue.EventID{}
	for i, name := range names {
		at[name] = ids[i]
	}
	for _, rule := range []struct {
		t operate.RuleType
		s eventqueue.Scope
	}{
		{operate.PauseRule, eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: "paused"}},
		{operate.BlockRule, eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: "blocked"}},
		// Those of others.
		{operate.PauseRule, eventqueue.Scope{Canvas: another, Module: key.Module, Name: key.Name}},
		{operate.PauseRule, eventqueue.Scope{Canvas: canvas, Module: "OTHER", Name: key.Name}},
	} {
		if _, err := r.store.AddRule(ctx, operate.RuleOf(rule.t, rule.s)); err != nil {
			t.Fatal(err)
		}
	}
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '30 s', attempts = 7 WHERE id = $1`, at["locked"])
	before := map[string]row{}
	for name, id := range at {
		before[name] = r.mustRow(id)
	}

	all := handlers
	for _, name := range []string{"paused", "blocked"} {
		all.Everywhere = append(all.Everywhere, eventqueue.HandlerKey{Module: key.Module, Name: name, Modifier: "_"})
	}
	all.OnCanvas = []eventqueue.CanvasHandler{{Canvas: another, Key: eventqueue.HandlerKey{Module: key.Module, Name: "unknown", Modifier: "_"}}}
	found, err := r.store.Claim(ctx, ids, all, 0)
	if err != nil {
		t.Fatal(err)
	}
	claimed, facts := map[eventqueue.EventID]bool{}, map[string]machine.Facts{}
	for _, f := range found {
		claimed[f.Event.ID] = f.Facts.Claimed
		facts[names[slices.Index(ids, f.Event.ID)]] = f.Facts
	}
	for name, id := range at {
		switch {
		case name == "free" && !claimed[id]:
			t.Error("the free event was not claimed")
		case name == "free":
		case claimed[id]:
			t.Errorf("the claim took the event that is %s", name)
		default:
			if diff := cmp.Diff(before[name], r.mustRow(id)); diff != "" {
				t.Errorf("the claim changed the row that is %s: %s", name, diff)
			}
		}
	}
	want := map[string]machine.Facts{
		"paused":  {Present: true, HandlerKnown: true, Rule: machine.PauseRule},
		"blocked": {Present: true, HandlerKnown: true, Rule: machine.BlockRule},
		"early":   {Present: true, HandlerKnown: true, Delay: time.Hour},
		"locked":  {Present: true, HandlerKnown: true, Lock: machine.LockHeld, LockRemaining: lockTimeout - 30*time.Second},
		"unknown": {Present: true},
		"free":    {Present: true, HandlerKnown: true, Claimed: true},
	}
	// The clock runs between the statements; a delay that is over is below zero.
	about := cmp.Comparer(func(a, b time.Duration) bool {
		return max(a, 0) == max(b, 0) || a > 0 && b > 0 && (a-b).Abs() < 20*time.Second
	})
	if diff := cmp.Diff(want, facts, about); diff != "" {
		t.Errorf("the facts: %s", diff)
	}
}

// TestEveryClaimHasItsOwnNumber (I5): after a release, after a failure and
// after an expired lock.
func TestEveryClaimHasItsOwnNumber(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.insert(event())[0]
	seen := map[int32]bool{}
	next := func() worker.Claim {
		t.Helper()
		c := r.claim(id)
		if seen[c.Attempt] {
			t.Errorf("the token %d was given twice", c.Attempt)
		}
		seen[c.Attempt] = true
		return c
	}
	r.complete(next(), machine.Released, 0, false)
	r.complete(next(), machine.RetryAllowed, 0, false)
	next()
	r.expire(id)
	next()
}

// TestTakingOverAnExpiredLockIsAFailedRun (I9), and is told as what it is; a claim
// of a free event is not.
func TestTakingOverAnExpiredLockIsAFailedRun(t *testing.T) {
	t.Parallel()
	newRig(t).inForms(func(r *rig, f form) {
		id := r.insert(event())[0]
		claim := func() worker.ClaimResult {
			r.t.Helper()
			found, err := f.claim(testenv.Context(r.t), r, id)
			if err != nil || len(found) != 1 || !found[0].Facts.Claimed {
				r.t.Fatalf("claimed: %+v, %v", found, err)
			}
			return found[0]
		}
		first := claim()
		r.complete(worker.Claim{Event: id, Attempt: first.Attempt}, machine.Released, 0, false)
		second := claim()
		for _, free := range []worker.ClaimResult{first, second} {
			if free.Facts.Lock != machine.LockFree || free.Event.Retries != 0 {
				r.t.Errorf("a free event was claimed as %+v with %d retries", free.Facts, free.Event.Retries)
			}
		}
		if n := r.mustRow(id).Retries; n != 0 {
			r.t.Fatalf("%d retries before the lock expired", n)
		}
		r.exec(`UPDATE events_v2 SET suspect = 1`)
		r.expire(id)
		over := claim()
		// Its lock was a minute and a second old, or older.
		if over.Facts.Lock != machine.LockStale || over.Facts.LockRemaining > -time.Second || over.Facts.LockRemaining < -time.Hour {
			r.t.Errorf("taken over as %+v", over.Facts)
		}
		if over.Event.Retries != 1 || r.mustRow(id).Retries != 1 {
			r.t.Errorf("taken over with %d retries, want 1", over.Event.Retries)
		}
	})
}

// TestRunBelongsToOneClaim (I18): that the run of one claim had begun says nothing of the next
// claim. What a failed or released run leaves is not taken for a run, and when a claim dies
// before its run, no attempt is used for the one before it.
func TestRunBelongsToOneClaim(t *testing.T) {
	t.Parallel()
	newRig(t).inForms(func(r *rig, f form) {
		id := r.insert(event())[0]
		claim := func() worker.Claim {
			r.t.Helper()
			r.exec(`UPDATE events_v2 SET delay_until = enqueued_at, locked_at = locked_at - interval '61 s' WHERE id = $1`, id)
			found, err := f.claim(testenv.Context(r.t), r, id)
			if err != nil || len(found) != 1 || !found[0].Facts.Claimed {
				r.t.Fatalf("claimed: %+v, %v", found, err)
			}
			return worker.Claim{Event: id, Attempt: found[0].Attempt, ID: found[0].ClaimID}
		}
		begin := func(c worker.Claim) {
			r.t.Helper()
			if written, err := r.store.Renew(testenv.Context(r.t), []worker.Claim{c}); err != nil || len(written.Done) != 1 {
				r.t.Fatalf("renewed: %+v, %v", written, err)
			}
		}
		state := func() string {
			return one[string](r, `SELECT concat(begun, ' ', retries) FROM events_v2 WHERE id = $1`, id)
		}
		for _, label := range []machine.Label{machine.Released, machine.RetryAllowed} {
			c := claim()
			begin(c)
			before := one[int](r, `SELECT retries FROM events_v2 WHERE id = $1`, id)
			if !r.complete(c, label, time.Second, false) {
				r.t.Fatalf("%s was not written", label)
			}
			if label == machine.RetryAllowed {
				before++
			}
			if got, want := state(), fmt.Sprint("f ", before); got != want {
				r.t.Errorf("after %s the event is %q, want %q", label, got, want)
			}
		}
		begin(claim())
		r.exec(`UPDATE events_v2 SET suspect = 1`)
		claim() // takes the begun run over, and dies before its own
		if got := state(); got != "f 2" {
			r.t.Errorf("the run that was taken over leaves %q", got)
		}
		claim()
		if got := state(); got != "f 2" {
			r.t.Errorf("a claim without a run was taken over, which leaves %q", got)
		}
	})
}

// TestClaimUsesTheCurrentDatabaseTime (I6): within a transaction that began
// before the event was due.
func TestClaimUsesTheCurrentDatabaseTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var began time.Time
	if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&began); err != nil {
		t.Fatal(err)
	}
	id := r.insert(event())[0]
	found, err := pgstore.ClaimIn(ctx, tx, []eventqueue.EventID{id}, handlers, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !found[0].Facts.Claimed {
		t.Errorf("an event that fell due after %s was not claimed: %+v", began, found[0].Facts)
	}
}

// TestOneOfTwoConcurrentClaimsHolds (I4, I15): the second comes while the first has
// not committed, and does not wait until it has.
func TestOneOfTwoConcurrentClaimsHolds(t *testing.T) {
	t.Parallel()
	newRig(t).inForms(func(r *rig, f form) {
		id := r.insert(event())[0]
		first := r.begin()
		first.claim(id)
		r.returns("the second claim", func(ctx context.Context) {
			found, err := f.claim(ctx, r, id)
			if err != nil || len(found) != 1 || found[0].Facts.Claimed {
				r.t.Errorf("the second claim: %+v, %v", found, err)
			}
		})
		first.end(`COMMIT`)
		if n := r.mustRow(id).Attempts; n != 1 {
			r.t.Errorf("the event was claimed %d times", n)
		}
	})
}

// TestWorkersClockDecidesNothing has a database whose clock is an hour off,
// either way.
func TestWorkersClockDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRigWithClock(t, ahead)
			later := event()
			later.Delay = 30 * time.Second
			before := r.now()
			ids := r.insert(event(), later)
			due := r.mustRow(ids[1]).DelayUntil
			if due.Before(before.Add(later.Delay)) || due.After(r.now().Add(later.Delay)) {
				t.Errorf("emitted at %s with a delay of %s, it is due at %s", before, later.Delay, due)
			}
			found := r.look(ids...)
			if f := found[ids[0]].Facts; !f.Claimed {
				t.Errorf("what is due by the database's clock was not claimed: %+v", f)
			}
			if f := found[ids[1]].Facts; f.Claimed || f.Delay <= 0 || f.Delay > later.Delay {
				t.Errorf("what is due in %s was found as %+v", later.Delay, f)
			}
			if f := r.look(ids[0])[ids[0]].Facts; f.Claimed || f.LockRemaining <= 0 || f.LockRemaining > lockTimeout {
				t.Errorf("a new lock was found as %+v", f)
			}
			r.setClock(ahead + 2*lockTimeout)
			for id, f := range r.look(ids...) {
				if !f.Facts.Claimed {
					t.Errorf("two lock timeouts later event %s was found as %+v", id, f.Facts)
				}
			}
		})
	}
}

// TestQueueConnectionsUseReadCommitted (I7): in a database whose default
// is another, a claim that waited for a rule would not see it.
func TestQueueConnectionsUseReadCommitted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	r.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L',
		current_database(), 'repeatable read'); END $$`)
	pool, err := pgstore.Open(ctx, r.pool.Config().ConnString(), "protocol", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var isolation string
	if err := pool.QueryRow(ctx, `SHOW transaction_isolation`).Scan(&isolation); err != nil {
		t.Fatal(err)
	}
	if isolation != "read committed" {
		t.Errorf("the isolation is %s", isolation)
	}
}
