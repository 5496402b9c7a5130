package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// A database that is too far away for the lock timeout answers no claim in time: the worker runs
// nothing, and warns of it once, with what to set.
func TestADatabaseThatIsTooFarAwayIsWarnedOf(t *testing.T) {
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
			rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
				store := pgstore.New(pool)
				far := rig.Faulty(store, rig.Faults{Before: func(ctx context.Context, op rig.Op) error {
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
				notifier := memnotify.New(memnotify.Config{})
				queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
				if err != nil {
					t.Fatal(err)
				}
				runs := 0
				handlers := eventqueue.NewHandlers()
				if err := handlers.Register(rig.Key, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { runs++; return nil }), eventqueue.Policy{}); err != nil {
					t.Fatal(err)
				}
				core, logs := observer.New(zap.WarnLevel)
				w, err := worker.New(queue, far, notifier, handlers, worker.Config{LockTimeout: c.lockTimeout, GracePeriod: -1, Logger: zap.New(core)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				event := eventqueue.NewEvent{Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name, Modifier: rig.Key.Modifier, Value: []byte(`1`)}
				if _, err := queue.EmitMany(t.Context(), []eventqueue.NewEvent{event}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute) // of the bubble
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if err := queue.Close(context.Background()); err != nil {
					t.Error(err)
				}
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
