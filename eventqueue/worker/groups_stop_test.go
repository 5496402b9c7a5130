package worker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// advancing is a store where each completion advances a group by two more events. It is
// also the notifier.
type advancing struct {
	*script
	mu          sync.Mutex
	last        eventqueue.EventID
	given       map[eventqueue.EventID]bool // advanced events that were neither claimed nor notified since
	completions int
	enough      bool
}

// Claim claims all, in a while.
func (h *advancing) Claim(_ context.Context, ids []eventqueue.EventID, _ eventqueue.HandlerSet, _ eventqueue.ClaimID) (found []worker.ClaimResult, _ error) {
	<-time.After(time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		f := h.claimed(id)
		f.Grouped = true
		found = append(found, *f)
		delete(h.given, id)
	}
	return found, nil
}

// Complete advances groups.
func (h *advancing) Complete(_ context.Context, _ eventqueue.DB, completions []worker.Completion, _ bool) (written worker.WriteResult, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, end := range completions {
		h.completions++
		written.Done = append(written.Done, end.Event)
		for range 2 {
			if h.enough {
				break
			}
			h.last++
			h.given[h.last] = true
			written.Advanced = append(written.Advanced, eventqueue.Event{ID: h.last, Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name, Modifier: rig.Key.Modifier})
		}
	}
	return written, nil
}

// Publish records what was notified.
func (h *advancing) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range notifications {
		delete(h.given, n.Event)
	}
	return nil
}

// TestStoppingWorkerRunsNoAdvancedEvent: however many events the completions of its runs
// advance, it begins none of them, and publishes a notification for each.
func TestStoppingWorkerRunsNoAdvancedEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &advancing{script: newScript(t), last: 1, given: map[eventqueue.EventID]bool{}}
		h.handle(eventqueue.Policy{}, func(_ context.Context, run *eventqueue.Run) error {
			<-time.After(time.Duration(run.ID%16) * 100 * time.Microsecond) // some end at any time
			return nil
		})
		stop := h.startOn(h, worker.Config{Concurrency: 1024})
		h.notify(h.claimed(1))
		rig.Pass(time.Second)
		stopped := make(chan struct{})
		go func() { defer close(stopped); stop() }()
		rig.Pass(time.Minute)
		h.mu.Lock()
		if h.completions < 100 {
			t.Errorf("%d events ended in a second of advancing", h.completions)
		}
		completions := h.completions
		h.mu.Unlock()
		select {
		case <-stopped:
		default:
			t.Errorf("a worker that was to stop goes on advancing: %d events", completions)
		}
		h.mu.Lock()
		h.enough = true
		h.mu.Unlock()
		<-stopped
		if len(h.given) > 0 {
			t.Errorf("%d advanced events were not notified", len(h.given))
		}
	})
}
