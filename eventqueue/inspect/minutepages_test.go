package inspect_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/test/testenv"
)

// TestPagesOfManyHandlers: a minute with more handlers than are read of it for one page ends the page; those that follow
// are on the next, with all their counts, and no page is empty.
func TestPagesOfManyHandlers(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	canvas := eventqueue.CanvasID{1}
	// 300 handlers have a count in one minute, and every second one has others before and after; 100 more, which come
	// after them, have one in another minute.
	if _, err := pool.Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, emitted)
		SELECT date_trunc('minute', clock_timestamp(), 'UTC') - m * interval '1 minute', $1, 'M', 'h' || lpad(h::text, 3, '0'), 1
		FROM generate_series(9, 12) AS m, generate_series(1, 400) AS h
		WHERE h > 300 AND m = 9 OR h <= 300 AND (m = 11 OR m > 9 AND h % 2 = 0)`, [16]byte(canvas)); err != nil {
		t.Fatal(err)
	}
	for resolution, rows := range map[inspect.Resolution]int{inspect.PerMinute: 700, inspect.PerHour: 400} {
		filter, page, pages := inspect.Filter{Canvas: &canvas}, map[string]int{}, 0
		emitted, found := int64(0), 0
		for after := new(eventqueue.Scope); after != nil; pages++ {
			counts, last, err := inspect.New(pool).MinutesPage(ctx, filter, 14*24*time.Hour, resolution, *after)
			if err != nil {
				t.Fatal(err)
			}
			if len(counts) == 0 {
				t.Errorf("per %s: page %d is empty", resolution, pages)
			}
			for i := range counts {
				m := &counts[i]
				if at, known := page[m.Name]; known && at != pages {
					t.Fatalf("per %s, %s is on page %d and on %d", resolution, m.Name, at, pages)
				}
				page[m.Name], emitted, found = pages, emitted+m.Emitted, found+1
			}
			after = last
		}
		if hours := found - rows; len(page) != 400 || emitted != 700 || hours < 0 || resolution == inspect.PerMinute && hours > 0 || hours > 300 || pages != 2 {
			t.Errorf("per %s: %d pages have %d counts of %d handlers, %d emitted", resolution, pages, found, len(page), emitted)
		}
	}
}
