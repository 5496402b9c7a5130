package fallback_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/memnotify"
)

// refusing is a notifier that refuses every call for a reason.
type refusing struct {
	*memnotify.Notifier
	mu  sync.Mutex
	why error
}

func (r *refusing) set(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = errors.New(why)
}

func (r *refusing) Check(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

func (r *refusing) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	return nil, r.Check(ctx)
}

// TestReceiversSecondCauseIsLogged (I19): while the notifier is down for ten minutes, each cause has
// its line, though not each failure, and Failure returns the present one.
func TestReceiversSecondCauseIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		n := &refusing{Notifier: memnotify.New(memnotify.Config{})}
		n.set("Unavailable")
		r, err := fallback.New(n, never{}, fallback.Config{Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = r.Attend(ctx) })     // nil when it is stopped
		running.Go(func() { _, _ = r.Pull(ctx, 1) }) // it finds nothing until it is stopped
		defer func() { stop(); running.Wait() }()
		for _, why := range []string{"Unavailable", "PermissionDenied"} {
			n.set(why)
			<-time.After(5 * time.Minute)
			if err := r.Failure(); err == nil || err.Error() != why {
				t.Errorf("the notifier is down because of %v, want %s", err, why)
			}
			if said := logs.TakeAll(); len(said) != 1 || said[0].ContextMap()["error"] != why {
				t.Errorf("of %s the log says %v", why, said)
			}
		}
	})
}
