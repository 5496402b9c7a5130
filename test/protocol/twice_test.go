package protocol

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// TestAWorkerKnowsItsNewestClaimOnly (I5): after a freeze a worker may take over
// its own expired lock while the handler of the old claim still runs. It ends that
// run, and names the event once in everything that it asks afterwards.
func TestAWorkerKnowsItsNewestClaimOnly(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		var cause error
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
			<-let
			if run.Attempt == 1 {
				cause = context.Cause(ctx)
				return nil
			}
			return eventqueue.Permanent(errors.New("no luck"))
		})
		var renewed []worker.Claim
		s.renewing = func(claims []worker.Claim) ([]eventqueue.EventID, error) {
			renewed = slices.Clone(claims)
			return nil, nil
		}
		stop := s.start(worker.Config{LockTimeout: time.Minute})
		older, newer := s.claimed(1), s.claimed(1)
		older.Attempt, newer.Attempt = 1, 2
		s.notify(older)
		pass(time.Second)
		s.notify(newer)
		pass(5 * time.Minute)
		close(let)
		stop()
		want := worker.Claim{Event: 1, Attempt: 2, ID: s.asked[1]}
		if !slices.Equal(renewed, []worker.Claim{want}) {
			s.t.Errorf("renewed were %+v, want the newest claim alone", renewed)
		}
		if !errors.Is(cause, eventqueue.ErrLockLost) {
			s.t.Errorf("the run of the old claim was told %v", cause)
		}
		if len(s.completions) != 1 || s.completions[0].Claim != want {
			s.t.Errorf("written were %+v, want the end of the newest claim alone", s.completions)
		}
	})
}
