package protocol

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// handing is a store where each end has two more events come to their turns, and
// the notifier.
type handing struct {
	*script
	mu          sync.Mutex
	last        eventqueue.EventID
	given       map[eventqueue.EventID]bool // turns that neither a claim nor a notification has followed
	completions int
	enough      bool
}

// Claim claims all, in a while.
func (h *handing) Claim(_ context.Context, ids []eventqueue.EventID, _ eventqueue.HandlerSet, _ time.Duration, _ eventqueue.ClaimID) (found []worker.ClaimResult, _ error) {
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

// Complete gives turns.
func (h *handing) Complete(_ context.Context, _ eventqueue.DB, completions []worker.Completion, _ bool) (written worker.WriteResult, _ error) {
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
			written.Advanced = append(written.Advanced, eventqueue.Event{ID: h.last, Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier})
		}
	}
	return written, nil
}

// Publish hears.
func (h *handing) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range notifications {
		delete(h.given, n.Event)
	}
	return nil
}

// TestAStoppingWorkerHandsNothingOver: however many turns the ends of its runs give,
// it begins none of them, and publishes a notification for each.
func TestAStoppingWorkerHandsNothingOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &handing{script: newScript(t), last: 1, given: map[eventqueue.EventID]bool{}}
		h.handle(eventqueue.Policy{}, func(_ context.Context, run *eventqueue.Run) error {
			<-time.After(time.Duration(run.ID%16) * 100 * time.Microsecond) // some end at any time
			return nil
		})
		queue, err := eventqueue.New(h, h, eventqueue.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(queue, h, h, h.handlers, worker.Config{Concurrency: 1024})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		h.notify(h.claimed(1))
		pass(time.Second)
		stop()
		pass(time.Minute)
		h.mu.Lock()
		if h.completions < 100 {
			t.Errorf("%d events ended in a second of handing over", h.completions)
		}
		completions := h.completions
		h.mu.Unlock()
		select {
		case <-stopped:
		default:
			t.Errorf("a worker that was to stop goes on handing over: %d events", completions)
		}
		h.mu.Lock()
		h.enough = true
		h.mu.Unlock()
		<-stopped
		if len(h.given) > 0 {
			t.Errorf("nobody hears of %d turns", len(h.given))
		}
	})
}

// Runnable finds nothing.
func (h *handing) Runnable(context.Context, eventqueue.Scope, []eventqueue.CanvasID, time.Duration) ([]eventqueue.Event, eventqueue.Scope, error) {
	return nil, eventqueue.Scope{}, nil
}
