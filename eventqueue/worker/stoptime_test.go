package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// unanswering is a script whose database and notifier, from some moment on, answer nothing.
type unanswering struct {
	*script
	database, notifier atomic.Bool
	pulls              sync.WaitGroup
}

// lastPullTakes is how long the notifier of package pubsubnotify waits when it is closed
// for the last pull, after its caller has gone.
const lastPullTakes = 7 * time.Second

func (h *unanswering) Pull(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	late := ctx.Err() != nil
	deliveries, err := h.script.Pull(ctx, max)
	if err != nil && !late && h.notifier.Load() {
		h.pulls.Go(func() { <-time.After(lastPullTakes) })
	}
	return deliveries, err
}

func (h *unanswering) hang(ctx context.Context, on *atomic.Bool) error {
	if !on.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *unanswering) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	h.mu.Lock()
	h.asked = append(h.asked, claim)
	h.mu.Unlock()
	if err := h.hang(ctx, &h.database); err != nil {
		return nil, err
	}
	return h.script.Claim(ctx, ids, known, claim)
}

func (h *unanswering) Complete(ctx context.Context, in eventqueue.DB, completions []worker.Completion, retain bool) (worker.WriteResult, error) {
	if err := h.hang(ctx, &h.database); err != nil {
		return worker.WriteResult{}, err
	}
	return h.script.Complete(ctx, in, completions, retain)
}

func (h *unanswering) Renew(ctx context.Context, claims []worker.Claim) (worker.WriteResult, error) {
	if err := h.hang(ctx, &h.database); err != nil {
		return worker.WriteResult{}, err
	}
	return h.script.Renew(ctx, claims)
}

func (h *unanswering) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	return errors.Join(h.hang(ctx, &h.notifier), h.script.Ack(ctx, deliveries))
}

func (h *unanswering) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	return errors.Join(h.hang(ctx, &h.notifier), h.script.Requeue(ctx, deliveries, after))
}

// claimsAtStopTake is about how long a stop waits for claims under way.
const claimsAtStopTake = time.Second

// TestStopKeepsItsGracePeriod: grace period and two seconds, of which the rest of a program
// has to have some, whatever hangs. The last pull, which closing the notifier waits for, has
// its time beside the grace period and not after it: with the default, of 8 s, the program
// has stopped within 10 s.
func TestStopKeepsItsGracePeriod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		grace              time.Duration
		database, notifier bool
		deaf               bool
	}{
		{"nothing hangs but a handler", 8 * time.Second, false, false, true},
		{"the database hangs", 8 * time.Second, true, false, false},
		{"the notifier hangs", 8 * time.Second, false, true, false},
		{"all hang", 8 * time.Second, true, true, true},
		{"all hang, without a grace period", -1, true, true, true},
		{"all hang, with a short one", time.Second / 2, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				h := &unanswering{script: s}
				let := make(chan struct{})
				defer close(let)
				s.handle(eventqueue.Policy{}, func(ctx context.Context, run *eventqueue.Run) error {
					if c.deaf && run.ID == 1 {
						<-let
					}
					<-ctx.Done()
					return ctx.Err()
				})
				stop := s.startOn(h, worker.Config{GracePeriod: c.grace, Concurrency: 4})
				s.notify(s.claimed(1), s.claimed(2))
				h.database.Store(c.database)
				h.notifier.Store(c.notifier)
				s.notify(s.claimed(3)) // its claim is under way
				began := time.Now()
				stop()
				most := 2 * time.Second
				if c.grace > claimsAtStopTake {
					most = 1600 * time.Millisecond
				}
				if took := time.Since(began); took > max(c.grace, 0)+most {
					s.t.Errorf("it took %s", took)
				}
				h.pulls.Wait() // the notifier is closed
				if took := time.Since(began); took > max(c.grace, 0)+most && took > lastPullTakes {
					s.t.Errorf("with the last pull it took %s", took)
				}
			})
		})
	}
}

// TestExpiredClaimIsNotRun (I3): the answer came, or the process went on, when
// the lock may have expired. The claim is given back, if it holds.
func TestExpiredClaimIsNotRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took  time.Duration
		runs  int
		label machine.Label
	}{
		{59 * time.Second, 1, machine.ExecutesToCompletion},
		// Not when a heartbeat is due, which would find that the claim still holds.
		{61 * time.Second, 0, machine.Released},
		{time.Hour + time.Second, 0, machine.Released},
	} {
		t.Run(c.took.String(), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.claiming = func(context.Context) error { <-time.After(c.took); return nil }
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				stop := s.start(worker.Config{LockTimeout: time.Minute})
				defer stop()
				s.notify(s.claimed(1))
				rig.Pass(c.took + time.Second)
				if got := s.state(); got.runs[1] != c.runs || len(got.completions) != 1 || got.completions[0].Label != c.label {
					s.t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestStopWritesCompletionsAfterAnOutage (I3): after an outage of any length
// the last writes of a worker that stops come in time.
func TestStopWritesCompletionsAfterAnOutage(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		down := true
		s.refuse = func([]worker.Completion) error {
			if down {
				return errors.New("the database is down")
			}
			return nil
		}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{LockTimeout: time.Minute, GracePeriod: -1, Jitter: longest})
		s.notify(s.claimed(1))
		rig.Pass(10 * time.Minute)
		s.mu.Lock()
		down = false
		s.mu.Unlock()
		stop()
		if got := s.state(); len(got.completions) != 1 || len(got.acked) != 1 {
			s.t.Errorf("the worker stopped and left %+v", got)
		}
	})
}

// longest is jitter at its worst.
func longest(d time.Duration) time.Duration { return d }
