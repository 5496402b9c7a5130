package memnotify_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/notifytest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, unit := range []time.Duration{time.Nanosecond, 10 * time.Millisecond} {
		t.Run(unit.String(), func(t *testing.T) {
			t.Parallel()
			notifytest.Run(t, func(*testing.T) notifytest.Harness {
				return notifytest.Harness{
					Notifier: memnotify.New(memnotify.Config{Unit: unit}),
					Unit:     unit,
				}
			})
		})
	}
}
