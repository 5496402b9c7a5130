package inspect_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/test/testenv"
)

// TestHandlersPendingAddsLatestCounts: of each canvas the last count of a handler is taken, none that is old, and the canvases are
// added up.
func TestHandlersPendingAddsLatestCounts(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	for _, row := range []struct {
		ago     int
		canvas  byte
		name    string
		pending any
		oldest  any
	}{
		{2, 1, "a", 100, "1 hour"}, {1, 1, "a", 5, "20 s"}, {0, 1, "a", nil, nil},
		{2, 2, "a", 6, "30 s"},
		{1, 1, "b", 3, nil},
		{20, 1, "c", 1000, "1 hour"},
	} {
		if _, err := pool.Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, pending, oldest_due)
			VALUES (date_trunc('minute', clock_timestamp(), 'UTC') - $1 * interval '1 minute', $2, 'M', $3, $4::bigint, $5::text::interval)`,
			row.ago, [16]byte(eventqueue.CanvasID{row.canvas}), row.name, row.pending, row.oldest); err != nil {
			t.Fatal(err)
		}
	}
	got, err := inspect.New(pool).HandlersPending(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []inspect.HandlerPending{{Module: "M", Name: "a", Pending: 11, OldestDue: 30 * time.Second}, {Module: "M", Name: "b", Pending: 3}}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}
