package fallback_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// fleet is a rig in virtual time whose workers find due events in the database.
type fleet struct {
	*rig.Rig
	store    *rig.FaultyStore
	searches atomic.Int64 // for due events

	mu  sync.Mutex
	ran map[eventqueue.EventID]bool
}

// withFleet runs a test on a queue with a notifier.
func withFleet(t *testing.T, notifier eventqueue.Publisher, test func(t *testing.T, f *fleet)) {
	t.Helper()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		f := &fleet{Rig: r, ran: map[eventqueue.EventID]bool{}}
		f.store = rig.Faulty(r.Store, rig.Faults{Before: func(ctx context.Context, op rig.Op) error {
			if op == rig.OpTakeDue {
				f.searches.Add(1)
			}
			return ctx.Err()
		}})
		r.QueueOn(f.store, notifier)
		r.Handle(func(_ context.Context, run *eventqueue.Run) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ran[run.ID] = true
			return nil
		}, eventqueue.Policy{})
		test(t, f)
	})
}

// emit emits n events, one by one.
func (f *fleet) emit(n int) {
	f.T.Helper()
	for range n {
		f.Emit(f.Event(`1`))
	}
}

// expectRuns requires that so many events have run.
func (f *fleet) expectRuns(want int) {
	f.T.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.ran); n != want {
		f.T.Errorf("%d of %d events ran", n, want)
	}
}

// work runs a worker whose notifier delivers nothing; store and listen are those of its fallback.
func (f *fleet) work(ctx context.Context, store fallback.Store, listen func(ctx context.Context, wake func(lost bool)) error, handlers *eventqueue.Handlers) (wait func()) {
	f.T.Helper()
	receiver, err := fallback.New(newSilent(false), store, fallback.Config{Listen: listen})
	if err != nil {
		f.T.Fatal(err)
	}
	w, err := worker.New(f.Queue, f.store, receiver, handlers, worker.Config{})
	if err != nil {
		f.T.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	return running.Wait
}

// poll runs a worker that finds due events in the database while others cannot publish.
func (f *fleet) poll(ctx context.Context, handlers *eventqueue.Handlers) (wait func()) {
	f.T.Helper()
	return f.work(ctx, f.store, func(ctx context.Context, wake func(lost bool)) error {
		return f.store.Listen(ctx, func() { wake(false) })
	}, handlers)
}

// overQuota is a notifier to which nothing can be published.
type overQuota struct{}

func (overQuota) Publish(context.Context, []eventqueue.Notification) error {
	return errors.New("quota exceeded")
}

// TestFoundEventOfUnknownHandlerIsLeftToOthers (I13, I19): publishing fails while
// pulling works, so that workers find due events in the database. One that has taken events
// whose handler it does not have leaves them to another, also when it is stopped.
func TestFoundEventOfUnknownHandlerIsLeftToOthers(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]bool{"goes on": false, "is stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withFleet(t, overQuota{}, func(t *testing.T, f *fleet) {
				const events = 100
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				old, stopOld := context.WithCancel(ctx)
				defer stopOld()
				defer f.poll(old, eventqueue.NewHandlers())()
				f.emit(events)
				rig.Pass(2 * time.Second) // it has taken all of them
				if stops {
					stopOld()
					rig.Pass(time.Second)
				}
				defer f.poll(ctx, f.Handlers)()
				// The old one leaves them, and polls after the other one.
				rig.Pass(10 * time.Second)
				f.expectRuns(events)
				stop()
			})
		})
	}
}

// TestEventOfUnknownHandlerIsNotFoundForever (I11): where publishing fails, and no worker has the
// handler.
func TestEventOfUnknownHandlerIsNotFoundForever(t *testing.T) {
	t.Parallel()
	withFleet(t, overQuota{}, func(t *testing.T, f *fleet) {
		ctx, stop := context.WithCancel(t.Context())
		defer f.poll(ctx, eventqueue.NewHandlers())()
		defer stop()
		f.emit(1)
		rig.Pass(2 * time.Minute)
		if n := f.searches.Swap(0); n < 14 || n > 200 {
			t.Errorf("%d searches in two minutes", n)
		}
		rig.Pass(time.Hour)
		if n := f.searches.Swap(0); n != 0 {
			t.Errorf("%d searches in the hour after that", n)
		}
	})
}

// counted is a database that counts the searches for lost notifications, and whose relays reach
// one worker.
type counted struct {
	*rig.FaultyStore
	searches atomic.Int64
	wake     func(lost bool)
}

func (c *counted) Awaiting(await maintenance.AwaitTake) maintenance.Searches {
	return countedSearches{c.FaultyStore.Awaiting(await), c}
}

type countedSearches struct {
	maintenance.Searches
	of *counted
}

func (s countedSearches) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	s.of.searches.Add(1)
	return s.Searches.TakeLost(ctx, after, limit, lostAfter)
}

// ReportLost implements maintenance.LostReporter.
func (c *counted) ReportLost(context.Context) error { c.wake(true); return nil }

// hole takes what is published, and nobody gets it.
type hole struct{}

func (hole) Publish(context.Context, []eventqueue.Notification) error { return nil }

// TestSilentNotifierIsDetected (I13, I19): it takes everything, answers every
// pull with nothing, and passes every check. The first events run when the relay has
// found that they are lost, those after them soon, and nothing is searched for when there
// is no more.
func TestSilentNotifierIsDetected(t *testing.T) {
	t.Parallel()
	withFleet(t, hole{}, func(t *testing.T, f *fleet) {
		store := &counted{FaultyStore: f.store, wake: func(bool) {}}
		ctx, stop := context.WithCancel(t.Context())
		wait := f.work(ctx, store, func(ctx context.Context, wake func(lost bool)) error {
			store.wake = wake
			<-ctx.Done()
			return ctx.Err()
		}, f.Handlers)
		relay, err := maintenance.NewRelay(store, hole{}, maintenance.RelayConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var relaying sync.WaitGroup
		relaying.Go(func() { _ = relay.Run(ctx) })
		defer relaying.Wait()
		defer wait()
		defer stop()
		rig.Pass(time.Minute)
		f.emit(10)
		rig.Pass(90 * time.Second) // the relay interval and the lock timeout
		f.expectRuns(10)
		for want := 20; want <= 60; want += 10 {
			rig.Pass(10 * time.Second)
			f.emit(10)
			rig.Pass(5 * time.Second)
			f.expectRuns(want)
		}
		rig.Pass(2 * time.Minute)
		store.searches.Store(0)
		rig.Pass(time.Hour)
		if n := store.searches.Load(); n != 0 {
			t.Errorf("%d searches in an hour without events", n)
		}
	})
}
