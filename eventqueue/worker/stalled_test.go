package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// hangingWorker is a script in which a call hangs.
type hangingWorker struct {
	*script
	*rig.Stall
}

func (h hangingWorker) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	if err := h.In(ctx, "claim"); err != nil {
		h.mu.Lock()
		h.asked = append(h.asked, claim)
		h.mu.Unlock()
		return nil, err
	}
	return h.script.Claim(ctx, ids, known, claim)
}

func (h hangingWorker) Renew(ctx context.Context, claims []worker.Claim) (worker.WriteResult, error) {
	if err := h.In(ctx, "renew"); err != nil {
		return worker.WriteResult{}, err
	}
	return h.script.Renew(ctx, claims)
}

func (h hangingWorker) Complete(ctx context.Context, db eventqueue.DB, completions []worker.Completion, retain bool) (worker.WriteResult, error) {
	if err := h.In(ctx, "complete"); err != nil {
		return worker.WriteResult{}, err
	}
	return h.script.Complete(ctx, db, completions, retain)
}

func (h hangingWorker) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if err := h.In(ctx, "requeue"); err != nil {
		return err
	}
	return h.script.Requeue(ctx, deliveries, after)
}

// TestHungLoopOfAWorkerIsNamed, and one whose calls end by their time-outs is not (I13): a
// database or a notifier that hangs is no reason to restart a worker.
func TestHungLoopOfAWorkerIsNamed(t *testing.T) {
	t.Parallel()
	rig.Stalls(t, map[string]string{
		"claim":    "loop that pulls notifications and claims events",
		"complete": "loop that writes completions",
		"renew":    "heartbeat that renews locks",
		"requeue":  "heartbeat that extends leases",
	}, func(t *testing.T, stall *rig.Stall) (stalled func() error, stop func()) {
		s := newScript(t)
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
			if run.ID == 2 { // the other one ends at once
				<-ctx.Done()
			}
			return nil
		})
		stopWorker := s.startOn(hangingWorker{s, stall}, worker.Config{LockTimeout: time.Minute, GracePeriod: -1})
		s.notify(s.claimed(1), s.claimed(2))
		return s.worker.Stalled, func() { stall.Release(); stopWorker() }
	})
}

// TestIdleAndBusyLoopsAreWell: a worker that has nothing to do for days is no stalled one, and
// neither is one whose handlers run for hours.
func TestIdleAndBusyLoopsAreWell(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.handle(eventqueue.Policy{Timeout: 24 * time.Hour}, func(context.Context, *eventqueue.Run) error {
			<-time.After(3 * time.Hour)
			return nil
		})
		stop := s.start(worker.Config{Concurrency: 2})
		defer stop()
		well := func() {
			for range 40 {
				rig.Pass(10 * time.Minute)
				if err := s.worker.Stalled(); err != nil {
					s.t.Fatal(err)
				}
			}
		}
		well()
		s.notify(s.claimed(1), s.claimed(2))
		well()
	})
}

// stuckLog takes no line from the moment at which it is stuck, until it is let.
type stuckLog struct {
	stuck atomic.Bool
	let   chan struct{}
}

func (l *stuckLog) Write(line []byte) (int, error) {
	if l.stuck.Load() {
		<-l.let
	}
	return len(line), nil
}

// TestEndThatCannotBeLoggedIsAStall (I13): wherever the end of a run is logged, a log that takes no line is noticed, as nothing but a new process
// helps then.
func TestEndThatCannotBeLoggedIsAStall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arrange func(s *script)
		want    string
	}{
		"an end that is written": {func(*script) {}, "loop that writes completions has"},
		"of a row that another transaction was writing": {func(s *script) { s.busy = map[eventqueue.EventID]int{1: 1} },
			"loop that writes completions once more has"},
		"of an event that was claimed again": {func(s *script) { s.notify(s.claimed(1)) }, "loop that writes completions has"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				log := &stuckLog{let: make(chan struct{})}
				hold := make(chan struct{})
				first := true
				s.handle(eventqueue.Policy{Timeout: time.Hour}, func(context.Context, *eventqueue.Run) error {
					if !first {
						return nil
					}
					first = false
					<-hold
					return eventqueue.Permanent(errors.New("no such order"))
				})
				logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(log), zap.InfoLevel))
				stop := s.start(worker.Config{LockTimeout: time.Minute, GracePeriod: -1, Logger: logger})
				s.notify(s.claimed(1))
				test.arrange(s)
				log.stuck.Store(true)
				close(hold)
				rig.Pass(2 * time.Minute)
				_ = s.worker.Stalled() // the first look sees that it is late
				rig.Pass(10 * time.Second)
				if err := s.worker.Stalled(); err == nil || !strings.Contains(err.Error(), test.want) {
					s.t.Errorf("the worker is stalled: %v", err)
				}
				log.stuck.Store(false)
				close(log.let)
				stop()
			})
		})
	}
}
