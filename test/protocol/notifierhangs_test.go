package protocol

import (
	"context"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// TestANotifierThatHangsCostsNoLock (I3): what was claimed is begun, and so its
// lock renewed, though the answers for the rest of its batch do not get through.
func TestANotifierThatHangsCostsNoLock(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.acking = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{Concurrency: 10, LockTimeout: 4 * time.Second})
		defer stop()
		gone := make([]*worker.ClaimResult, 10)
		for i := range gone {
			gone[i] = &worker.ClaimResult{Event: eventqueue.Event{ID: eventqueue.EventID(100 + i)}}
		}
		// One hangs, twice as many as there are slots wait behind it, and the next
		// has no room.
		s.notify(gone[0])
		s.notify(gone...)
		s.notify(gone...)
		s.notify(gone[0], s.claimed(1))
		pass(time.Second)
		if s.state().runs[1] != 1 {
			s.t.Error("an event was claimed and not begun")
		}
	})
}
