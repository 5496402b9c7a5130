package fallback_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
)

// mute is a notifier that says that it is well, and may answer no pull.
type mute struct {
	generous
	hangs bool
}

func (m *mute) set(hangs bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hangs = hangs
}

// Pull takes as long as those of package pubsubnotify.
func (m *mute) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	m.mu.Lock()
	hangs := m.hangs
	m.mu.Unlock()
	takes := 4 * time.Second
	if hangs {
		takes = 7 * time.Second
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if hangs {
		return nil, context.DeadlineExceeded
	}
	return nil, nil
}

// TestSilentNotifierCountsAsDown (I19) when the first one has ended, and for as
// long as it answers none, though it says all the while that it is well. Within 10 s of its
// recovery it is used again.
func TestSilentNotifierCountsAsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &mute{}
		r, err := fallback.New(m, never{}, fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var pulling sync.WaitGroup
		pulling.Go(func() { _ = r.Attend(ctx) })
		for range 2 { // as a worker does
			pulling.Go(func() {
				for ctx.Err() == nil {
					_, _ = r.Pull(ctx, 10) // until the end
				}
			})
		}
		defer pulling.Wait()
		defer stop()
		for _, hangs := range []bool{false, true, false} {
			m.set(hangs)
			<-time.After(11 * time.Second) // a pull of before may end well after 4 s
			if hangs {
				<-time.After(time.Second)
			}
			for range 120 {
				synctest.Wait()
				if failure := r.Failure(); (failure != nil) != hangs {
					t.Fatalf("Failure = %v of a notifier that hangs: %v", failure, hangs)
				}
				<-time.After(500 * time.Millisecond)
			}
		}
	})
}
