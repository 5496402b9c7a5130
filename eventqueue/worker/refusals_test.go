package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// mute is a notifier that may refuse answers, or never answer them.
type mute struct {
	*memnotify.Notifier
	refuses, hangs, requeues atomic.Bool
}

func (m *mute) answer(ctx context.Context) error {
	switch {
	case m.refuses.Load():
		return errors.New("permission denied")
	case m.hangs.Load():
		<-ctx.Done()
		return ctx.Err()
	default:
		return nil
	}
}

func (m *mute) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	if m.requeues.Load() {
		return m.Notifier.Ack(ctx, deliveries)
	}
	return errors.Join(m.answer(ctx), m.Notifier.Ack(ctx, deliveries))
}

func (m *mute) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if !m.requeues.Load() {
		return m.Notifier.Requeue(ctx, deliveries, after)
	}
	return errors.Join(m.answer(ctx), m.Notifier.Requeue(ctx, deliveries, after))
}

// TestAnswersThatAreNotTakenAreReported (I19): readiness reads it, after ten seconds, and no longer
// when they are taken again.
func TestAnswersThatAreNotTakenAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail func(*mute) *atomic.Bool
		says string
	}{
		"acknowledgements are refused": {func(m *mute) *atomic.Bool { return &m.refuses }, "cannot be acknowledged: permission denied"},
		"acknowledgements hang":        {func(m *mute) *atomic.Bool { return &m.hangs }, "cannot be acknowledged: context deadline exceeded"},
		"requeues are refused": {func(m *mute) *atomic.Bool { m.requeues.Store(true); return &m.refuses },
			"cannot be requeued: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				m := &mute{Notifier: r.Notifier}
				failing := c.fail(m)
				w := muteWorker(r, m)
				during := func(d time.Duration) {
					for until := time.Now().Add(d); time.Now().Before(until); <-time.After(time.Second) {
						r.Emit(r.Event(`1`))
					}
				}
				during(time.Minute)
				if err := w.NotifierError(); err != nil {
					t.Errorf("while all answers are taken: %v", err)
				}
				failing.Store(true)
				during(5 * time.Second)
				if err := w.NotifierError(); err != nil {
					t.Errorf("after five seconds: %v", err)
				}
				during(10 * time.Second)
				var untaken *worker.UntakenError
				if err := w.NotifierError(); !errors.As(err, &untaken) || !strings.Contains(err.Error(), c.says) || !strings.Contains(c.says, "cannot be "+untaken.Kind+":") {
					t.Errorf("after fifteen seconds: %v", err)
				}
				failing.Store(false)
				during(5 * time.Second)
				if err := w.NotifierError(); err != nil {
					t.Errorf("when answers are taken again: %v", err)
				}
			})
		})
	}
}

// muteWorker runs a worker whose events are requeued for ten seconds when they run first, and then
// completed, until the test ends.
func muteWorker(r *rig.Rig, m *mute) *worker.Worker {
	r.T.Helper()
	var tried sync.Map
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		if _, again := tried.LoadOrStore(run.ID, true); !again {
			return errors.New("the first time")
		}
		return nil
	}, eventqueue.Policy{Backoff: func(int) time.Duration { return 10 * time.Second }})
	r.Receiver = m
	w, _ := r.StartWorker(r.Store, worker.Config{})
	return w
}
