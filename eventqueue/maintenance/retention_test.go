package maintenance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/minutes"
)

// TestHowLongCountsAreRetained: those of a minute for 14 days, and those of an hour for a year.
func TestHowLongCountsAreRetained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		counted := time.Now().Truncate(time.Hour)
		counts := minutes.Counts{Scope: eventqueue.Scope{Canvas: eventqueue.CanvasID{1}, Module: "WORKER", Name: "a"}, Completed: 7}
		if _, err := store.AddMinutes(t.Context(), []minutes.Counts{counts}); err != nil {
			t.Fatal(err)
		}
		const day = 24 * time.Hour
		for _, at := range []struct {
			age            time.Duration
			minutes, hours int
		}{
			{2 * time.Hour, 1, 1},
			{14*day - time.Hour, 1, 1},
			{14*day + 2*time.Hour, 0, 1},
			{365*day - time.Hour, 0, 1},
			{365*day + 2*time.Hour, 0, 0},
		} {
			<-time.After(time.Until(counted.Add(at.age)))
			if _, err := maintenance.MaintainMinutes(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			if m, h := store.MinuteRows(), store.HourRows(); len(m) != at.minutes || len(h) != at.hours {
				t.Errorf("after %s there are %d minutes and %d hours, want %d and %d", at.age, len(m), len(h), at.minutes, at.hours)
			} else if len(h) == 1 && h[0].Completed != 7 {
				t.Errorf("after %s the hour has %+v", at.age, h[0])
			}
		}
	})
}
