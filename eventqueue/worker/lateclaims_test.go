package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// A database that is too far away for the lock timeout answers no claim in time: the worker runs
// nothing, and warns of it once, with what to set.
func TestDistantDatabaseIsWarnedOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lockTimeout time.Duration
		runs, warns int
	}{
		"too far for the lock timeout": {5 * time.Second, 0, 1},
		"near enough":                  {20 * time.Second, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				far := rig.Faulty(r.Store, rig.Faults{Before: func(ctx context.Context, op rig.Op) error {
					if op != rig.OpClaim {
						return nil
					}
					select {
					case <-time.After(4 * time.Second):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}})
				runs := 0
				r.Handle(func(context.Context, *eventqueue.Run) error { runs++; return nil }, eventqueue.Policy{})
				core, logs := observer.New(zap.WarnLevel)
				stop := r.StartOn(far, worker.Config{LockTimeout: c.lockTimeout, GracePeriod: -1, Logger: zap.New(core)})
				r.Emit(r.Event(`1`))
				time.Sleep(5 * time.Minute) // of the bubble
				stop()
				warns := 0
				for _, entry := range logs.All() {
					if strings.Contains(entry.Message, "LOCK_TIMEOUT") {
						warns++
						if fields := entry.ContextMap(); fields["lock_timeout"] != c.lockTimeout || fields["claim_takes_at_most"] != c.lockTimeout/2 {
							t.Errorf("the warning has the fields %v", fields)
						}
					}
				}
				if runs != c.runs || warns != c.warns {
					t.Errorf("%d runs and %d warnings, want %d and %d", runs, warns, c.runs, c.warns)
				}
			})
		})
	}
}
