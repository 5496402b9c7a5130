package pgstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

var endCases = []testCase{
	{"a completed event is gone", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}); !slices.Equal(written.Done, []eventqueue.EventID{id}) {
			s.Errorf("the end was answered with %+v", written)
		}
		found, err := s.store.Claim(s.Context(), []eventqueue.EventID{id}, handlers, 2)
		if err != nil || len(found) != 0 {
			s.Errorf("a claim after the end found %+v, %v", found, err)
		}
	}},
	{"no write succeeds with the claim of another (I5)", func(s *session) {
		id := s.insert(1)[0]
		_, old := s.mustClaim(id, 1)
		s.expireLocks()
		_, claim := s.mustClaim(id, 2)
		if written := s.complete(worker.Completion{Claim: old, Label: machine.ExecutesToCompletion}); !slices.Equal(written.Lost, []eventqueue.EventID{id}) {
			s.Errorf("an end with a stale claim was answered with %+v", written)
		}
		written, err := s.store.Renew(s.Context(), []worker.Claim{old})
		if err != nil || !slices.Equal(written.Lost, []eventqueue.EventID{id}) {
			s.Errorf("a renewal of a stale claim was answered with %+v, %v", written, err)
		}
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}); len(written.Done) != 1 {
			s.Errorf("the end of the holder was answered with %+v", written)
		}
	}},
	{"a large value comes apart from its claim, and to its holder alone (I5, I15)", func(s *session) {
		valued := func(value string) func(*eventqueue.NewEvent) {
			return func(e *eventqueue.NewEvent) { e.Value = json.RawMessage(value) }
		}
		largest := `"` + strings.Repeat("x", worker.MaxClaimedValueBytes-2) + `"`
		larger := largest + " "
		found, _ := s.mustClaim(s.insert(1, valued(largest))[0], 1)
		if found.ValueApart || string(found.Event.Value) != largest {
			s.Errorf("a value of %d bytes came apart: %t", len(largest), found.ValueApart)
		}
		id := s.insert(1, valued(larger))[0]
		_, old := s.mustClaim(id, 1)
		s.expireLocks()
		found, claim := s.mustClaim(id, 2)
		if !found.ValueApart || found.Event.Value != nil {
			s.Errorf("a value of %d bytes came with its claim: %t, %d bytes", len(larger), found.ValueApart, len(found.Event.Value))
		}
		if value, held, err := s.store.Value(s.Context(), claim); string(value) != larger || !held || err != nil {
			s.Errorf("its holder read %d bytes, held: %t, %v", len(value), held, err)
		}
		for _, other := range []worker.Claim{old, {Event: id, Attempt: claim.Attempt, ID: old.ID}, {Event: id, Attempt: old.Attempt, ID: claim.ID}, {Event: id + 1, Attempt: claim.Attempt, ID: claim.ID}} {
			if value, held, err := s.store.Value(s.Context(), other); value != nil || held || err != nil {
				s.Errorf("with the claim %+v, which does not hold, one read %d bytes, held: %t, %v", other, len(value), held, err)
			}
		}
		s.complete(worker.Completion{Claim: claim, Label: machine.Released})
		if _, held, err := s.store.Value(s.Context(), claim); held || err != nil {
			s.Errorf("after it was released: held: %t, %v", held, err)
		}
	}},
	{"an event whose worker died uses an attempt only if it died alone (I15, I18)", func(s *session) {
		id := s.insert(1)[0]
		number := eventqueue.ClaimID(1)
		found, claim := s.mustClaim(id, number)
		for _, step := range []struct {
			together         int // that run with it when it begins; 0: it does not begin
			company, retries int
			lost             bool
		}{{0, worker.AnyCompany, 0, false}, {7, 3, 0, false}, {0, 3, 0, false}, {2, 1, 0, false}, {0, 1, 0, false}, {1, 1, 1, true}, {0, 1, 1, true}, {1, 1, 2, true}} {
			if step.together > 0 {
				if written, err := s.store.BeginRuns(s.Context(), []worker.Claim{claim}, step.together); err != nil || len(written.Done) != 1 {
					s.Fatalf("the beginning was answered with %+v, %v", written, err)
				}
			}
			if written, err := s.store.Renew(s.Context(), []worker.Claim{claim}); step.company != worker.AnyCompany && (err != nil || len(written.Done) != 1) {
				s.Fatalf("the renewal was answered with %+v, %v", written, err)
			}
			s.expireLocks()
			number++
			if found, claim = s.mustClaim(id, number); found.Company != step.company || found.Event.Retries != step.retries || found.LostRun != step.lost {
				s.Errorf("after %+v the next claim found %+v", step, found)
			}
		}
		s.complete(worker.Completion{Claim: claim, Label: machine.Released})
		if found, claim = s.mustClaim(id, number+1); found.Company != 1 || !found.LostRun {
			s.Errorf("after a release the next claim found %+v", found)
		}
		s.complete(worker.Completion{Claim: claim, Label: machine.OverLimit})
		if found, claim = s.mustClaim(id, number+2); found.Company != 1 {
			s.Errorf("after a rate limit has put it off the next claim found %+v", found)
		}
		s.complete(worker.Completion{Claim: claim, Label: machine.RetryAllowed})
		if found, _ = s.mustClaim(id, number+3); found.Company != 0 || found.LostRun {
			s.Errorf("after a run that its worker survived the next claim found %+v", found)
		}
	}},
	{"a run that another process has lost makes a suspect (I15)", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		s.complete(worker.Completion{Claim: claim, Label: machine.Released, Company: 4})
		found, claim := s.mustClaim(id, 2)
		if found.Company != 4 || found.Event.Retries != 0 {
			s.Errorf("after it was released the next claim found %+v", found)
		}
		s.complete(worker.Completion{Claim: claim, Label: machine.RetryAllowed, Company: 1})
		if found, _ = s.mustClaim(id, 3); found.Company != 1 || found.Event.Retries != 1 {
			s.Errorf("after it had failed alone the next claim found %+v", found)
		}
	}},
	{"a run that begins as no suspect makes one when it is lost (I15)", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		if written, err := s.store.Renew(s.Context(), []worker.Claim{claim}); err != nil || len(written.Done) != 1 {
			s.Fatalf("the renewal was answered with %+v, %v", written, err)
		}
		s.expireLocks()
		if found, _ := s.mustClaim(id, 2); found.Company != worker.AnyCompany || found.Event.Retries != 0 || found.LostRun {
			s.Errorf("the next claim found %+v", found)
		}
	}},
	{"a claim that nobody knows of is given back by its number", func(s *session) {
		id := s.insert(1)[0]
		s.mustClaim(id, 1)
		for _, give := range []struct {
			number eventqueue.ClaimID
			want   []eventqueue.EventID
		}{{2, nil}, {1, []eventqueue.EventID{id}}, {1, nil}} {
			given, err := s.store.GiveBack(s.Context(), give.number, []eventqueue.EventID{id})
			if err != nil || !slices.Equal(given, give.want) {
				s.Errorf("claim %d gave %v back, %v, want %v", give.number, given, err, give.want)
			}
		}
		if found, _ := s.mustClaim(id, 3); found.Event.Retries != 0 || found.Attempt != 2 {
			s.Errorf("the next claim found %+v", found)
		}
	}},
	{"a claim that nobody knows of is not given back if its event was cancelled", func(s *session) {
		id := s.insert(1)[0]
		s.mustClaim(id, 1)
		s.remove(id, &operate.Cancellation{}, operate.ChangeEnding)
		if given, err := s.store.GiveBack(s.Context(), 1, []eventqueue.EventID{id}); err != nil || len(given) != 0 {
			s.Errorf("the claim gave %v back, %v", given, err)
		}
		s.expireLocks()
		if found, _ := s.mustClaim(id, 2); !found.Cancelled {
			s.Errorf("the next claim found %+v", found)
		}
	}},
	{"a failed run is tried again after its delay (I9)", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		s.complete(worker.Completion{Claim: claim, Label: machine.RetryAllowed, Delay: time.Hour})
		facts := s.claim(id, 2).Facts
		if facts.Claimed || facts.Lock != machine.LockFree || facts.Delay <= 59*time.Minute {
			s.Errorf("the claim found %+v", facts)
		}
	}},
	{"a transaction that is rolled back leaves nothing", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		failed := errors.New("the handler's own write failed")
		err := s.store.InTx(s.Context(), func(ctx context.Context, db eventqueue.DB) error {
			if _, err := s.store.Complete(ctx, db, []worker.Completion{{Claim: claim, Label: machine.ExecutesToCompletion}}, false); err != nil {
				return err
			}
			return failed
		})
		if !errors.Is(err, failed) {
			s.Errorf("InTx returned %v", err)
		}
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}); len(written.Done) != 1 {
			s.Errorf("after the rollback the end was answered with %+v", written)
		}
	}},
}

// claimDue claims an event that was put off for a microsecond, once that is over.
func (s *session) claimDue(id eventqueue.EventID, number eventqueue.ClaimID) worker.Claim {
	s.Helper()
	for {
		found := s.claim(id, number)
		if found.Facts.Claimed {
			return worker.Claim{Event: id, Attempt: found.Attempt, ID: found.ClaimID}
		}
		if found.Facts.Delay <= 0 || found.Facts.Delay > time.Microsecond {
			s.Fatalf("event %s was not claimed: %+v", id, found.Facts)
		}
	}
}

// failOnce claims an event and completes it as a failed run.
func (s *session) failOnce(id eventqueue.EventID, label machine.Label, number eventqueue.ClaimID) {
	s.Helper()
	claim := s.claimDue(id, number)
	written := s.complete(worker.Completion{Claim: claim, Label: label, LastError: "no luck", Duration: time.Second})
	if len(written.Done) != 1 {
		s.Fatalf("the end of event %s was answered with %+v", id, written)
	}
}

// deleteAttempts removes the attempts of events that are gone, by pages of one row.
func (s *session) deleteAttempts() (total int) {
	s.Helper()
	for after := eventqueue.EventID(0); ; {
		deleted, next, err := s.store.DeleteAttempts(s.Context(), after, 1)
		if err != nil {
			s.Fatalf("DeleteAttempts: %v", err)
		}
		total += deleted
		if next == 0 {
			return total
		}
		if next <= after {
			s.Fatalf("DeleteAttempts after %s came to %s", after, next)
		}
		after = next
	}
}

var attemptCases = []testCase{
	{"the failed attempts of an event stay until it is gone", func(s *session) {
		queued, failed, done := s.insert(1)[0], s.insert(1)[0], s.insert(1)[0]
		s.failOnce(queued, machine.RetryAllowed, 1)
		s.failOnce(failed, machine.FailedForGood, 2)
		s.failOnce(done, machine.RetryAllowed, 3)
		s.failOnce(done, machine.RetryAllowed, 4)
		if deleted := s.deleteAttempts(); deleted != 0 {
			s.Errorf("%d attempts of events that are queued or in event_log were removed", deleted)
		}
		claim := s.claimDue(done, 5)
		s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion})
		if deleted := s.deleteAttempts(); deleted != 2 {
			s.Errorf("%d attempts of an event that is gone were removed, want 2", deleted)
		}
	}},
	{"an event retains its newest attempts, and what is not recorded leaves none", func(s *session) {
		id := s.insert(1)[0]
		for i := range worker.MaxAttempts + 5 {
			s.failOnce(id, machine.RetryAllowed, eventqueue.ClaimID(i+1))
		}
		claim := s.claimDue(id, 90)
		s.complete(worker.Completion{Claim: claim, Label: machine.RetryAllowed, Unrecorded: true})
		claim = s.claimDue(id, 91)
		s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion})
		if deleted := s.deleteAttempts(); deleted != worker.MaxAttempts {
			s.Errorf("the event had %d attempts, want %d", deleted, worker.MaxAttempts)
		}
	}},
}
