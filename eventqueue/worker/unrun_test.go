package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// An event that a rate limit has put off is given back, which may take as long as the
// database does. Meanwhile nothing records a run that there was not (I18): of those whose
// ends cannot be written only the one that ran has begun.
func TestDeferredEventHasNotBegun(t *testing.T) {
	t.Parallel()
	t.Run("claimed once", func(t *testing.T) { putOffUnwritten(t, 1) })
	t.Run("taken over", func(t *testing.T) { putOffUnwritten(t, 2) })
}

// putOffUnwritten has a worker claim two events, of which a limit admits one, as their claim of
// the given number. No completion is written.
func putOffUnwritten(t *testing.T, claims int32) {
	t.Helper()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		mute := rig.Faulty(r.Store, rig.Faults{Before: func(_ context.Context, op rig.Op) error {
			if op == rig.OpComplete {
				return errors.New("nobody answers")
			}
			return nil
		}})
		r.Handle(func(_ context.Context, run *eventqueue.Run) error {
			if claims > 1 && !rig.One[bool](r, `SELECT begun FROM events_v2 WHERE id = $1`, run.ID) {
				t.Errorf("event %s runs before that is recorded, though it was lost before", run.ID)
			}
			return nil
		}, eventqueue.Policy{})
		limit := operate.RateLimit{Scope: handlerScope(), PerDay: 1, Mode: ratelimit.Exact}
		if _, err := r.Store.SetRateLimit(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		ids := r.Emit(r.Copies(2)...)
		for range claims - 1 { // by workers that die before the runs begin
			if _, err := r.Store.Claim(t.Context(), ids, r.Handlers.Set(), 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(61 * time.Second) // of the bubble
		}
		r.StartOn(mute, worker.Config{Heartbeat: 5 * time.Second, GracePeriod: -1})
		time.Sleep(30 * time.Second) // of the bubble: some heartbeats
		if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE attempts = $1 AND locked_at IS NOT NULL`, claims); n != len(ids) {
			t.Errorf("%d events are locked after %d claims: the test proves nothing", n, claims)
		}
		begun := rig.One[[]eventqueue.EventID](r, `SELECT array_agg(id) FROM events_v2 WHERE begun`)
		if len(begun) != 1 || begun[0] != ids[0] {
			t.Errorf("recorded as begun are %v, want event 1 alone, which ran", begun)
		}
	})
}
