package pgnotify

import (
	"testing"
	"time"

	"eventsv2/eventqueue/notifytest"
	"eventsv2/test/testenv"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	notifytest.Run(t, func(t *testing.T) notifytest.Harness {
		// The suite extends a lease of one unit before it ends, so the unit must be
		// long against a machine that is busy.
		unit := 500 * time.Millisecond
		return notifytest.Harness{Notifier: open(t, testenv.Pool(t), Config{Unit: unit}), Unit: unit}
	})
}
