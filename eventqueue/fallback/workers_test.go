package fallback_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// fleet is a queue on a database in virtual time, on which workers run that find due events in the database.
type fleet struct {
	*testing.T
	store    *rig.FaultyStore
	queue    *eventqueue.Queue
	searches atomic.Int64 // for due events

	mu  sync.Mutex
	ran map[eventqueue.EventID]bool
}

// withFleet runs a test on a queue with a notifier.
func withFleet(t *testing.T, notifier eventqueue.Publisher, test func(f *fleet)) {
	t.Helper()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		f := &fleet{T: t, ran: map[eventqueue.EventID]bool{}}
		f.store = rig.Faulty(pgstore.New(pool), rig.Faults{Before: func(ctx context.Context, op rig.Op) error {
			if op == rig.OpTakeDue {
				f.searches.Add(1)
			}
			return ctx.Err()
		}})
		var err error
		if f.queue, err = eventqueue.New(f.store, notifier, eventqueue.QueueConfig{}); err != nil {
			t.Fatal(err)
		}
		test(f)
	})
}

// handlers have one for the events of the fleet, which records that they ran.
func (f *fleet) handlers() *eventqueue.Handlers {
	f.Helper()
	handlers := eventqueue.NewHandlers()
	if err := handlers.Register(rig.Key, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ran[run.ID] = true
		return nil
	}), eventqueue.Policy{}); err != nil {
		f.Fatal(err)
	}
	return handlers
}

// emit emits n events.
func (f *fleet) emit(n int) {
	f.Helper()
	for range n {
		if _, err := f.queue.Emit(f.Context(), rig.Event(`1`)); err != nil {
			f.Fatal(err)
		}
	}
}

// expectRuns requires that so many events have run.
func (f *fleet) expectRuns(want int) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.ran); n != want {
		f.Errorf("%d of %d events ran", n, want)
	}
}

// work runs a worker whose notifier delivers nothing; store and listen are those of its fallback.
func (f *fleet) work(ctx context.Context, store fallback.Store, listen func(ctx context.Context, wake func(lost bool)) error, handlers *eventqueue.Handlers) (wait func()) {
	f.Helper()
	receiver, err := fallback.New(newSilent(false), store, fallback.Config{Listen: listen})
	if err != nil {
		f.Fatal(err)
	}
	w, err := worker.New(f.queue, f.store, receiver, handlers, worker.Config{})
	if err != nil {
		f.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	return running.Wait
}

// poll runs a worker that finds due events in the database while others cannot publish.
func (f *fleet) poll(ctx context.Context, handlers *eventqueue.Handlers) (wait func()) {
	f.Helper()
	return f.work(ctx, f.store, func(ctx context.Context, wake func(lost bool)) error {
		return f.store.Listen(ctx, func() { wake(false) })
	}, handlers)
}

// overQuota is a notifier to which nothing can be published.
type overQuota struct{}

func (overQuota) Publish(context.Context, []eventqueue.Notification) error {
	return errors.New("quota exceeded")
}

// TestWhatAWorkerFindsAndDoesNotKnowIsLeftToOthers (I13, I19): publishing fails while
// pulling works, so that workers find due events in the database. One that has taken events
// whose handler it does not have leaves them to another, also when it is stopped.
func TestWhatAWorkerFindsAndDoesNotKnowIsLeftToOthers(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]bool{"goes on": false, "is stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withFleet(t, overQuota{}, func(f *fleet) {
				const events = 100
				ctx, stop := context.WithCancel(f.Context())
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
				defer f.poll(ctx, f.handlers())()
				// The old one leaves them, and polls after the other one.
				rig.Pass(10 * time.Second)
				f.expectRuns(events)
				stop()
			})
		})
	}
}

// TestWhatNobodyKnowsIsNotFoundForEver (I11): where publishing fails, and no worker has the
// handler.
func TestWhatNobodyKnowsIsNotFoundForEver(t *testing.T) {
	t.Parallel()
	withFleet(t, overQuota{}, func(f *fleet) {
		ctx, stop := context.WithCancel(f.Context())
		defer f.poll(ctx, eventqueue.NewHandlers())()
		defer stop()
		f.emit(1)
		rig.Pass(2 * time.Minute)
		if n := f.searches.Swap(0); n < 14 || n > 200 {
			f.Errorf("%d searches in two minutes", n)
		}
		rig.Pass(time.Hour)
		if n := f.searches.Swap(0); n != 0 {
			f.Errorf("%d searches in the hour after that", n)
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

// TestANotifierThatDeliversNothingIsFoundOut (I13, I19): it takes everything, answers every
// pull with nothing, and passes every check. The first events run when the relay has
// found that they are lost, those after them soon, and nothing is searched for when there
// is no more.
func TestANotifierThatDeliversNothingIsFoundOut(t *testing.T) {
	t.Parallel()
	withFleet(t, hole{}, func(f *fleet) {
		store := &counted{FaultyStore: f.store, wake: func(bool) {}}
		ctx, stop := context.WithCancel(f.Context())
		wait := f.work(ctx, store, func(ctx context.Context, wake func(lost bool)) error {
			store.wake = wake
			<-ctx.Done()
			return ctx.Err()
		}, f.handlers())
		relay, err := maintenance.NewRelay(store, hole{}, maintenance.RelayConfig{})
		if err != nil {
			f.Fatal(err)
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
			f.Errorf("%d searches in an hour without events", n)
		}
	})
}
