package pgnotify

import (
	"context"
	"errors"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

func TestPaceFollowsTheRateOfPulls(t *testing.T) {
	t.Parallel()
	start := time.Now()
	p := &pace{}
	for i, step := range []struct {
		ms, record, want int
	}{
		{0, 0, 0},
		{1, 300, 300},
		{400, 200, 500},
		{500, 100, 500}, // the window before counts
		{900, 600, 700},
		{1000, 0, 700},
		{1499, 0, 700},
		{1500, 0, 0},
		{1501, 10, 10},
		{9000, 0, 0},
	} {
		now := start.Add(time.Duration(step.ms) * time.Millisecond)
		p.record(now, step.record)
		if got := p.expected(now); got != step.want {
			t.Errorf("step %d at %d ms: %d are expected, want %d", i, step.ms, got, step.want)
		}
	}
}

// TestUnpulledNotificationsGoBack has one process take more than it pulls.
func TestUnpulledNotificationsGoBack(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]bool{"when its time is over": false, "when pulling stops": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, pool := two(t)
			publish(t, b, 1, 50)
			a.pace.record(time.Now().Add(time.Hour), 100) // the window has not ended when it is asked
			first, err := a.Pull(testenv.Context(t), 1)
			if err != nil || len(first) != 1 {
				t.Fatalf("pulled %+v, %v", first, err)
			}
			if left := rows(t, pool); left != 0 {
				t.Fatalf("the table has %d notifications, want all taken", left)
			}
			if stop {
				ctx, cancel := context.WithCancel(testenv.Context(t))
				cancel()
				if _, err := a.Pull(ctx, 1); !errors.Is(err, context.Canceled) {
					t.Fatalf("Pull = %v", err)
				}
				if ready := a.leases.readyCount(); ready != 0 {
					t.Errorf("%d notifications are kept for a pull that may never come", ready)
				}
			}
			came := map[int64]bool{int64(first[0].Event): true}
			for len(came) < 50 {
				deliveries, err := b.Pull(testenv.Context(t), 100)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range deliveries {
					if came[int64(d.Event)] {
						t.Errorf("event %v came twice", d.Event)
					}
					came[int64(d.Event)] = true
				}
			}
			ack(t, a, first)
		})
	}
}
