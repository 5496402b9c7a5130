package protocol

import (
	"context"
	"errors"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// TestAStopWritesTheEndsWhenTheDatabaseIsBack (I3): after an outage of any length
// the last writes of a worker that stops come in time.
func TestAStopWritesTheEndsWhenTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		down := true
		s.refuse = func([]worker.Completion) error {
			if down {
				return errors.New("the database is down")
			}
			return nil
		}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{LockTimeout: time.Minute, GracePeriod: -1, Jitter: longest})
		s.notify(s.claimed(1))
		pass(10 * time.Minute)
		s.mu.Lock()
		down = false
		s.mu.Unlock()
		stop()
		if got := s.state(); len(got.completions) != 1 || len(got.acked) != 1 {
			s.t.Errorf("the worker stopped and left %+v", got)
		}
	})
}

// longest is jitter at its worst.
func longest(d time.Duration) time.Duration { return d }
