package inspect_test

import (
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/test/testenv"
)

// TestPriorityIsShownAndFiltered in the queue; the history has none.
func TestPriorityIsShownAndFiltered(t *testing.T) {
	t.Parallel()
	ctx, q := testenv.Context(t), newQueueOf(t)
	ids := q.emit(3, 1, "greet", "")
	for i, priority := range []string{"high", "low"} {
		q.exec(`UPDATE events_v2 SET priority = $2::text::event_priority WHERE id = $1`, ids[i], priority)
	}
	q.exec(`UPDATE events_v2 SET attempts = 9`)
	stuck, err := q.reader.Stuck(ctx, inspect.Filter{}, inspect.StuckAfter{Unclaimed: time.Hour, Attempts: 9}, 0, 10)
	if err != nil || len(stuck) != 3 {
		t.Fatalf("%+v, %v", stuck, err)
	}
	canvas := eventqueue.CanvasID{1}
	for i, priority := range []string{"high", "low", "normal"} {
		want := strings.TrimSuffix(priority, "normal")
		shown, err := q.reader.Show(ctx, ids[i])
		if err != nil || shown.Queued.Priority != want || stuck[i].Priority != want {
			t.Errorf("a %s event is shown with %q, and as stuck with %q, %v", priority, shown.Queued.Priority, stuck[i].Priority, err)
		}
		for _, filter := range []inspect.Filter{{}, {Canvas: &canvas}, {Canvas: &canvas, Module: "WORKER", Name: "greet"}} {
			filter.Priority = priority
			for _, newest := range []bool{false, true} {
				listed, next, err := q.reader.List(ctx, filter, "", newest, 0, 10)
				if err != nil || len(listed) != 1 || listed[0].ID != ids[i] || listed[0].Priority != want || next != 0 {
					t.Errorf("of priority %s are listed %+v, then %d, %v", priority, listed, next, err)
				}
			}
			if _, _, err := q.reader.Log(ctx, inspect.LogFilter{Filter: filter}, true, inspect.LogPlace{}, 10); err == nil || !strings.Contains(err.Error(), "leave out the priority "+priority) {
				t.Errorf("of the history: %v", err)
			}
		}
	}
}
