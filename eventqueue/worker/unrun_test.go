package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// An event that a rate limit has put off is given back, which may take as long as the
// database does. Meanwhile nothing records a run that there was not (I18): of those whose
// ends cannot be written only the one that ran has begun.
func TestWhatIsPutOffHasNotBegun(t *testing.T) {
	t.Parallel()
	t.Run("claimed once", func(t *testing.T) { putOffUnwritten(t, 1) })
	t.Run("taken over", func(t *testing.T) { putOffUnwritten(t, 2) })
}

// putOffUnwritten has a worker claim two events, of which a limit admits one, as their claim of
// the given number. No completion is written.
func putOffUnwritten(t *testing.T, claims int32) {
	t.Helper()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		store := pgstore.New(pool)
		mute := rig.Faulty(store, rig.Faults{Before: func(_ context.Context, op rig.Op) error {
			if op == rig.OpComplete {
				return errors.New("nobody answers")
			}
			return nil
		}})
		notifier := memnotify.New(memnotify.Config{})
		queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		handlers := eventqueue.NewHandlers()
		handler := eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
			if claims > 1 && !rig.Scalar[bool](t, pool, `SELECT begun FROM events_v2 WHERE id = $1`, run.ID) {
				t.Errorf("event %s runs before that is recorded, though it was lost before", run.ID)
			}
			return nil
		})
		if err := handlers.Register(rig.Key, handler, eventqueue.Policy{}); err != nil {
			t.Fatal(err)
		}
		limit := operate.RateLimit{Scope: handlerScope(), PerDay: 1, Mode: ratelimit.Exact}
		if _, err := store.SetRateLimit(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(queue, mute, notifier, handlers, worker.Config{Heartbeat: 5 * time.Second, GracePeriod: -1})
		if err != nil {
			t.Fatal(err)
		}
		event := eventqueue.NewEvent{Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name, Modifier: rig.Key.Modifier, Value: []byte(`1`)}
		ids, err := queue.EmitMany(t.Context(), []eventqueue.NewEvent{event, event})
		if err != nil {
			t.Fatal(err)
		}
		for range claims - 1 { // by workers that die before the runs begin
			if _, err := store.Claim(t.Context(), ids, handlers.Set(), 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(61 * time.Second) // of the bubble
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(30 * time.Second) // of the bubble: some heartbeats
		if n := rig.Scalar[int](t, pool, `SELECT count(*) FROM events_v2 WHERE attempts = $1 AND locked_at IS NOT NULL`, claims); n != len(ids) {
			t.Errorf("%d events are locked after %d claims: the test proves nothing", n, claims)
		}
		begun := rig.Scalar[[]eventqueue.EventID](t, pool, `SELECT array_agg(id) FROM events_v2 WHERE begun`)
		if len(begun) != 1 || begun[0] != ids[0] {
			t.Errorf("recorded as begun are %v, want event 1 alone, which ran", begun)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := queue.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
