package eventqueue_test

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
)

// refusing is a notifier that refuses for a reason, and a store for what it refuses.
type refusing struct {
	mu  sync.Mutex
	why error
}

func (r *refusing) set(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = why
}

func (r *refusing) Publish(context.Context, []eventqueue.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

func (r *refusing) MarkPending(context.Context, []eventqueue.EventID) error { return nil }

func (r *refusing) TakePending(context.Context, []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return nil, nil
}

// TestPublishersSecondCauseIsLogged (I19): while publishing fails for ten minutes, each cause has
// its line, though not each failure, and the last error is the present one.
func TestPublishersSecondCauseIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		n := &refusing{}
		sender := eventqueue.NewSender(n, n, time.Second, time.Second, zap.New(core))
		for _, why := range []string{"Unavailable", "PermissionDenied"} {
			n.set(errors.New(why))
			for range 300 {
				_ = sender.Send(t.Context(), []eventqueue.Notification{{Event: 1}}) // LastError says it
				<-time.After(time.Second)
			}
			if err := sender.LastError(); err == nil || err.Error() != why {
				t.Errorf("the last error is %v, want %s", err, why)
			}
			if said := logs.TakeAll(); len(said) != 1 || said[0].ContextMap()["error"] != why {
				t.Errorf("of %s the log says %v", why, said)
			}
		}
	})
}
