package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// waking is a store whose database says something else at first.
type waking struct {
	*pgstore.Store
	answers []error // the first ones; then it is fit
	asked   atomic.Int64
}

func (w *waking) CheckWorker(context.Context) error {
	if n := int(w.asked.Add(1)); n <= len(w.answers) {
		return w.answers[n-1]
	}
	return nil
}

// TestWorkerWaitsForItsDatabase: it logs that once, works within some seconds after the
// database is back, and ends at once when it is stopped, or when no waiting helps (I17).
func TestWorkerWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	away, unfit := errors.New("nobody listens"), &eventqueue.UnfitError{Err: errors.New("no such user")}
	many := make([]error, 50)
	for i := range many {
		many[i] = away
	}
	for name, c := range map[string]struct {
		answers []error
		begins  bool
		err     error
	}{
		"there":               {nil, true, nil},
		"away for a while":    {many[:20], true, nil},
		"away for ever":       {many, false, nil},
		"unfit":               {[]error{unfit}, false, unfit},
		"away and then unfit": {[]error{away, away, unfit}, false, unfit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				store := &waking{Store: r.Store, answers: c.answers}
				ran := make(chan struct{}, 1)
				r.Handle(func(context.Context, *eventqueue.Run) error { ran <- struct{}{}; return nil }, eventqueue.Policy{})
				core, logs := observer.New(zap.InfoLevel)
				w, err := worker.New(r.Queue, store, r.Notifier, r.Handlers, worker.Config{Logger: zap.New(core)})
				if err != nil {
					t.Fatal(err)
				}
				r.Emit(r.Event(`1`))
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				ended := make(chan error, 1)
				began := time.Now()
				go func() { ended <- w.Run(ctx) }()
				// The longest wait is 7.5 s, so fifty of them take longer.
				select {
				case <-ran:
					if !c.begins {
						t.Error("the worker works")
					}
				case err := <-ended:
					if !errors.Is(err, c.err) || c.err == nil {
						t.Errorf("Run = %v after %s, want %v", err, time.Since(began), c.err)
					}
					ended <- nil
				case <-time.After(3 * time.Minute):
					if c.begins || c.err != nil {
						t.Error("the worker still waits")
					}
				}
				stopped := time.Now()
				stop()
				if err := <-ended; err != nil {
					t.Errorf("Run = %v", err)
				}
				if took := time.Since(stopped); took > 5*time.Second {
					t.Errorf("the stop took %s", took)
				}
				want := min(len(c.answers), 1)
				if c.err != nil {
					want = len(c.answers) - 1
				}
				if n := logs.FilterMessageSnippet("waiting for the database").Len(); n != min(want, 1) {
					t.Errorf("the log says %d times that the worker waits: %v", n, logs.All())
				}
			})
		})
	}
}
