package maintenance_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/test/rig"
)

// hanging is a store without events, in which a call hangs.
type hanging struct {
	*rig.Pages
	*rig.Stall
}

func (h hanging) TakeDue(ctx context.Context, _ time.Duration, _ int, _ maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	return nil, h.In(ctx, "due")
}

func (h hanging) Sweep(ctx context.Context, _ eventqueue.EventID, _ int, _ time.Duration) (maintenance.Swept, error) {
	return maintenance.Swept{Read: 1}, h.In(ctx, "sweep")
}

func (h hanging) TakeRound(ctx context.Context, _ maintenance.RoundPlace, _ time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	return nil, maintenance.RoundPlace{}, h.In(ctx, "round")
}

func (h hanging) CountWaiting(ctx context.Context, _ eventqueue.Scope) (maintenance.Waiting, error) {
	return maintenance.Waiting{}, h.In(ctx, "count")
}

func (h hanging) OldestDue(ctx context.Context, _ eventqueue.Scope) (eventqueue.EventID, string, error) {
	return 0, "", h.In(ctx, "oldest")
}

func (h hanging) CountEmits(ctx context.Context) (bool, error) {
	return false, h.In(ctx, "count emits")
}

func (h hanging) SumMinutes(ctx context.Context) (bool, error) {
	return false, h.In(ctx, "sum minutes")
}

func (h hanging) SumHour(ctx context.Context) (bool, error) { return false, h.In(ctx, "sum") }

func (h hanging) PruneMinutes(ctx context.Context, _, _ time.Duration, _ int) (int, error) {
	return 0, h.In(ctx, "prune minutes")
}

func (h hanging) PruneLog(ctx context.Context, _ maintenance.LogStatus, _ time.Duration, _ eventqueue.EventID, _ int) (maintenance.PrunedPage, error) {
	return maintenance.PrunedPage{}, h.In(ctx, "prune")
}

func (hanging) CountLog(context.Context, maintenance.LogStatus, time.Duration, eventqueue.EventID, int) (maintenance.PrunedPage, error) {
	return maintenance.PrunedPage{}, nil
}

// TestHungRelayLoopIsNamed, as those of a worker are.
func TestHungRelayLoopIsNamed(t *testing.T) {
	t.Parallel()
	rig.Stalls(t, map[string]string{
		"due":   "relay that publishes pending notifications",
		"sweep": "relay that walks over all events",
		"round": "relay that looks for lost notifications",
		"count": "relay that counts what is pending",
		"":      "",
	}, func(t *testing.T, s *rig.Stall) (stalled func() error, stop func()) {
		h := hanging{rig.NewPages(0, 0), s}
		relay, err := maintenance.NewRelay(h, h, maintenance.RelayConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return relay.Stalled, s.Run(t, relay.Run)
	})
}

// TestHungPrunerIsNamed, too.
func TestHungPrunerIsNamed(t *testing.T) {
	t.Parallel()
	rig.Stalls(t, map[string]string{"prune": "pruner"}, func(t *testing.T, s *rig.Stall) (stalled func() error, stop func()) {
		pruner := newPruner(t, hanging{rig.NewPages(0, 0), s}, maintenance.PrunerConfig{FailedFor: time.Hour})
		return pruner.Stalled, s.Run(t, pruner.Run)
	})
}

// TestRelayBoundsEveryStatement (I13): a search that gets no answer is given up, and
// made again.
func TestRelayBoundsEveryStatement(t *testing.T) {
	t.Parallel()
	for _, search := range []string{"round", "sweep"} {
		t.Run(search, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := hanging{rig.NewPages(0, 0), rig.NewStall(search)}
				running(t, h, h, maintenance.RelayConfig{})
				h.AskedAgain(t)
			})
		})
	}
}
