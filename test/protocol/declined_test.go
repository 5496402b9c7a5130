package protocol

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
)

// refusing is a notifier to which nothing can be published.
type refusing struct{}

func (refusing) Publish(context.Context, []eventqueue.Notification) error {
	return errors.New("quota exceeded")
}

// pollable is a store in which workers find due events.
type pollable interface {
	worker.Store
	fallback.Store
	Listen(ctx context.Context, wake func()) error
}

// polling runs a worker that finds due events in a store while others cannot publish.
func (s *script) polling(ctx context.Context, store pollable, queue *eventqueue.Queue, handlers *eventqueue.Handlers) (wait func()) {
	receiver, err := fallback.New(&silentNotifier{changed: make(chan struct{})}, store, fallback.Config{Listen: func(ctx context.Context, wake func(lost bool)) error {
		return store.Listen(ctx, func() { wake(false) })
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := worker.New(queue, store, receiver, handlers, worker.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	return running.Wait
}

// TestWhatAWorkerFindsAndDoesNotKnowIsLeftToOthers (I13, I19): publishing fails while
// pulling works, so that workers find due events in the database. One that has taken events
// whose handler it does not have leaves them to another, also when it is stopped.
func TestWhatAWorkerFindsAndDoesNotKnowIsLeftToOthers(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]bool{"goes on": false, "is stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTimeOn(t, func(s *script, pool *pgxpool.Pool) {
				const events = 100
				store := pgstore.New(pool)
				queue, err := eventqueue.New(store, refusing{}, eventqueue.QueueConfig{})
				if err != nil {
					s.t.Fatal(err)
				}
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				ctx, stop := context.WithCancel(s.t.Context())
				defer stop()
				old, stopOld := context.WithCancel(ctx)
				defer stopOld()
				defer s.polling(old, store, queue, eventqueue.NewHandlers())()
				for range events {
					if _, err := queue.Emit(ctx, event()); err != nil {
						s.t.Fatal(err)
					}
				}
				pass(2 * time.Second) // it has taken all of them
				if stops {
					stopOld()
					pass(time.Second)
				}
				defer s.polling(ctx, store, queue, s.handlers)()
				// The old one leaves them, and polls after the other one.
				pass(10 * time.Second)
				if n := len(s.state().runs); n != events {
					s.t.Errorf("%d of %d events ran", n, events)
				}
				stop()
			})
		})
	}
}

// claimed is a database that counts the searches for due events.
type claimed struct {
	*pgstore.Store
	claims atomic.Int64
}

func (l *claimed) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	l.claims.Add(1)
	return l.Store.TakeDue(ctx, within, limit, await)
}

// TestWhatNobodyKnowsIsNotFoundForEver (I11): where publishing fails, and no worker has the
// handler.
func TestWhatNobodyKnowsIsNotFoundForEver(t *testing.T) {
	t.Parallel()
	inVirtualTimeOn(t, func(s *script, pool *pgxpool.Pool) {
		store := &claimed{Store: pgstore.New(pool)}
		queue, err := eventqueue.New(store, refusing{}, eventqueue.QueueConfig{})
		if err != nil {
			s.t.Fatal(err)
		}
		ctx, stop := context.WithCancel(s.t.Context())
		defer s.polling(ctx, store, queue, eventqueue.NewHandlers())()
		defer stop()
		if _, err := queue.Emit(ctx, event()); err != nil {
			s.t.Fatal(err)
		}
		pass(2 * time.Minute)
		if n := store.claims.Swap(0); n < 14 || n > 200 {
			s.t.Errorf("%d searches in two minutes", n)
		}
		pass(time.Hour)
		if n := store.claims.Swap(0); n != 0 {
			s.t.Errorf("%d searches in the hour after that", n)
		}
	})
}
