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

// passing is a store with one pending event.
type passing struct {
	never
	mu      sync.Mutex
	pending bool
	fails   int // so many marks fail
	marked  []eventqueue.EventID
}

func (p *passing) TakeDue(context.Context, time.Duration, int, maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.pending {
		return nil, nil
	}
	p.pending = false
	return []eventqueue.Notification{{Event: 7}}, nil
}

func (p *passing) MarkPending(_ context.Context, ids []eventqueue.EventID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails > 0 {
		p.fails--
		return errors.New("no answer")
	}
	p.marked = append(p.marked, ids...)
	return nil
}

// TestDeclinedEventIsPendingAgainAfterItsDelay (I13, I19): an event that was found in the
// database, and that this process cannot run, is marked as pending when the delay is over,
// and not before. A mark that fails is made again.
func TestDeclinedEventIsPendingAgainAfterItsDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &passing{pending: true, fails: 2}
		b := &switchable{Notifier: memnotify.New(memnotify.Config{})}
		b.set(true)
		r, err := fallback.New(b, store, fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var found int
		var pulling sync.WaitGroup
		pulling.Go(func() {
			for ctx.Err() == nil {
				deliveries, _ := r.Pull(ctx, 10) // it fails with the mark
				if found += len(deliveries); len(deliveries) > 0 {
					if err := r.Decline(ctx, deliveries, 5*time.Second); err != nil {
						t.Error(err)
					}
				}
			}
		})
		marked := func() []eventqueue.EventID {
			store.mu.Lock()
			defer store.mu.Unlock()
			return slices.Clone(store.marked)
		}
		time.Sleep(8 * time.Second) // 3 s until it is down
		if got := marked(); len(got) != 0 {
			t.Errorf("%v are marked before the delay is over", got)
		}
		time.Sleep(8 * time.Second)
		if got := marked(); !slices.Equal(got, []eventqueue.EventID{7}) || found != 1 {
			t.Errorf("marked: %v, delivered %d times; want event 7, and once", got, found)
		}
		stop()
		pulling.Wait()
	})
}
