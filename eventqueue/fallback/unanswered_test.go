package fallback_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
)

// unanswering is a store that takes an event, and whose answer is lost.
type unanswering struct {
	never
	mu     sync.Mutex
	taken  bool
	marked []eventqueue.EventID
}

func (u *unanswering) TakeDue(_ context.Context, _ time.Duration, _ int, await maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.taken {
		return nil, nil
	}
	u.taken = true
	over := func(error) {}
	if await != nil {
		over = await([]eventqueue.EventID{7})
	}
	err := errors.New("the connection was cut")
	over(err)
	return nil, err
}

func (u *unanswering) MarkPending(_ context.Context, ids []eventqueue.EventID) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.marked = append(u.marked, ids...)
	return nil
}

// TestUnansweredPollLeavesItsEventsPending (I19), soon after its answer was lost, or when the worker ends.
func TestUnansweredPollLeavesItsEventsPending(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"soon": 10 * time.Second, "at the end": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &unanswering{}
				b := &switchable{Notifier: memnotify.New(memnotify.Config{})}
				b.set(true)
				r, err := fallback.New(b, store, fallback.Config{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = r.Attend(ctx) })
				for err == nil { // until the answer is lost
					pulling, cancel := context.WithTimeout(ctx, time.Minute)
					if _, err = r.Pull(pulling, 10); errors.Is(err, context.DeadlineExceeded) {
						t.Fatal("the store was not asked")
					}
					cancel()
				}
				if after > 0 {
					<-time.After(after)
					synctest.Wait()
				} else {
					stop()
					running.Wait()
				}
				store.mu.Lock()
				if !slices.Equal(store.marked, []eventqueue.EventID{7}) {
					t.Errorf("marked: %v", store.marked)
				}
				store.mu.Unlock()
				stop()
				running.Wait()
			})
		})
	}
}
