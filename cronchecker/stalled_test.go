package cronchecker_test

import (
	"context"
	"testing"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/test/rig"
)

// hanging is a store without definitions in which Load hangs.
type hanging struct{ *rig.Stall }

func (h hanging) Load(ctx context.Context) (cronchecker.Snapshot, error) {
	return cronchecker.Snapshot{Now: time.Now()}, h.In(ctx, "load")
}

func (hanging) Prune(context.Context, []cronchecker.CronID, time.Duration) error { return nil }

func (hanging) Emit(context.Context, []cronchecker.Slot) (int, error) { return 0, nil }

// TestHungCronCheckerIsNamed, as the loops of a worker are.
func TestHungCronCheckerIsNamed(t *testing.T) {
	t.Parallel()
	rig.Stalls(t, map[string]string{"load": "cron checker"}, func(t *testing.T, s *rig.Stall) (stalled func() error, stop func()) {
		checker, err := cronchecker.New(hanging{s}, cronchecker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return checker.Stalled, s.Run(t, checker.Run)
	})
}
