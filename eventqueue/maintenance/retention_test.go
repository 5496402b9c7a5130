package maintenance_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
)

// TestHowLongCountsAreRetained: those of a minute for 14 days, and those of an hour for a year.
func TestHowLongCountsAreRetained(t *testing.T) {
	t.Parallel()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		store := pgstore.New(pool)
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
			m, h := rig.Scalar[int](t, pool, `SELECT count(*) FROM event_minutes`), rig.Scalar[int](t, pool, `SELECT count(*) FROM event_hours WHERE completed = 7`)
			if m != at.minutes || h != at.hours {
				t.Errorf("after %s there are %d minutes and %d hours, want %d and %d", at.age, m, h, at.minutes, at.hours)
			}
		}
	})
}
