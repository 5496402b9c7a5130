package pgstore_test

import (
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// TestClaimNumberRepeatedByACrashIsNoFence (I5): a crash that forgets commits gives the
// number of a claim once more.
func TestClaimNumberRepeatedByACrashIsNoFence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.insert(event())
	claim := func(number eventqueue.ClaimID) worker.Claim {
		found, err := r.store.Claim(ctx, ids, handlers, number)
		if err != nil || len(found) != 1 || !found[0].Facts.Claimed {
			t.Fatalf("%+v, %v", found, err)
		}
		return worker.Claim{Event: ids[0], Attempt: found[0].Attempt, ID: number}
	}
	before := claim(7)
	r.exec(`UPDATE events_v2 SET locked_at = NULL, attempts = 0, claim_id = NULL`) // what the crash leaves
	after := claim(8)
	if before.Attempt != after.Attempt {
		t.Fatalf("attempts %d and %d", before.Attempt, after.Attempt)
	}
	if written, err := r.store.Renew(ctx, []worker.Claim{before}); err != nil || len(written.Lost) != 1 {
		t.Errorf("renewed: %+v, %v", written, err)
	}
	if given, err := r.store.GiveBack(ctx, 7, ids); err != nil || len(given) != 0 {
		t.Errorf("given back: %v, %v", given, err)
	}
	if r.complete(before, machine.ExecutesToCompletion, 0, false) || !r.complete(after, machine.ExecutesToCompletion, 0, false) {
		t.Error("the stale end was written, or the good one was not")
	}
}

// TestClaimOfAnOlderProgramIsNotGivenBack (I4): in a rolling deploy, a worker that does not
// know claim_id takes over what another has claimed and never heard of, and leaves that
// claim's number in the row.
func TestClaimOfAnOlderProgramIsNotGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.insert(event())
	const number = 7
	if found, err := r.store.Claim(ctx, ids, handlers, number); err != nil || len(found) != 1 || !found[0].Facts.Claimed {
		t.Fatalf("%+v, %v", found, err)
	}
	r.expire(ids[0])
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp(), attempts = attempts + 1, retries = retries + (locked_at IS NOT NULL)::int`)
	before := r.mustRow(ids[0])
	if given, err := r.store.GiveBack(ctx, number, ids); err != nil || len(given) != 0 {
		t.Errorf("given back: %v, %v", given, err)
	}
	r.unchanged(ids[0], before)
	r.expire(ids[0])
	if c := r.claim(ids[0]); !r.complete(c, machine.ExecutesToCompletion, 0, false) {
		t.Error("the next claim does not hold")
	}
}

// TestClaimThatIsGivenBackLosesNoLostRun (I9): the claim that had counted it comes to
// nothing, and the next one reports it all the same.
func TestClaimThatIsGivenBackLosesNoLostRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.insert(event())
	r.claim(ids[0])
	r.exec(`UPDATE events_v2 SET suspect = 1`)
	r.expire(ids[0])
	if found, err := r.store.Claim(ctx, ids, handlers, 9); err != nil || !found[0].LostRun {
		t.Fatalf("taken over: %+v, %v", found, err)
	}
	if given, err := r.store.GiveBack(ctx, 9, ids); err != nil || len(given) != 1 {
		t.Fatalf("given back: %v, %v", given, err)
	}
	if f := r.look(ids...)[ids[0]]; !f.LostRun || f.Event.Retries != 1 {
		t.Errorf("claimed after that: %+v", f)
	}
}

// TestClaimThatIsReleasedLosesNoLostRun (I9): neither does one that is given back
// because its worker was stopped before the run began.
func TestClaimThatIsReleasedLosesNoLostRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.insert(event())
	r.claim(ids[0])
	r.exec(`UPDATE events_v2 SET suspect = 1`)
	r.expire(ids[0])
	f := r.look(ids...)[ids[0]]
	if !f.LostRun {
		t.Fatalf("taken over: %+v", f)
	}
	end := worker.Completion{Claim: worker.Claim{Event: ids[0], Attempt: f.Attempt, ID: f.ClaimID}, Label: machine.Released}
	if written, err := r.store.Complete(ctx, nil, []worker.Completion{end}, false); err != nil || len(written.Done) != 1 {
		t.Fatalf("released: %+v, %v", written, err)
	}
	if f := r.look(ids...)[ids[0]]; !f.LostRun || f.Event.Retries != 1 {
		t.Errorf("claimed after that: %+v", f)
	}
}
