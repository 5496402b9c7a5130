package pgstore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/testenv"
)

// TestRunnableCountsClaimableEvents has, on canvases beside a busy one, events that
// may not be claimed, each for a reason of its own, and one that may.
func TestRunnableCountsClaimableEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	on := func(name string, delay time.Duration) eventqueue.EventID {
		e := event()
		e.Canvas, e.Name, e.Delay = another, name, delay
		return r.insert(e)[0]
	}
	r.insert(event())
	on("paused", 0)
	on("early", time.Hour)
	running, abandoned, free := on("running", 0), on("abandoned", 0), on("free", 0)
	if _, err := r.store.AddRule(ctx, operate.RuleOf(operate.PauseRule, eventqueue.Scope{Canvas: another, Module: key.Module, Name: "paused"})); err != nil {
		t.Fatal(err)
	}
	for id, age := range map[eventqueue.EventID]string{running: "30 s", abandoned: "90 s"} {
		r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - $2::text::interval WHERE id = $1`, id, age)
	}
	events, next, err := r.store.Runnable(ctx, eventqueue.Scope{}, []eventqueue.CanvasID{canvas})
	if err != nil || next != (eventqueue.Scope{}) {
		t.Fatalf("next %v, error %v; want no more pages", next, err)
	}
	want := []eventqueue.Event{
		{ID: abandoned, Canvas: another, Module: key.Module, Name: "abandoned", Modifier: key.Modifier},
		{ID: free, Canvas: another, Module: key.Module, Name: "free", Modifier: key.Modifier},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("runnable events (-want +got):\n%s", diff)
	}
}

// TestRunnableReachesEveryCanvas walks more canvases than a page has, behind
// canvases whose handlers have more events than are looked at.
func TestRunnableReachesEveryCanvas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var events []eventqueue.NewEvent
	for range 500 {
		events = append(events, event())
	}
	for i := range 150 {
		e := event()
		e.Canvas = eventqueue.CanvasID{0xf0, byte(i)}
		events = append(events, e)
	}
	r.insert(events...)
	seen := map[eventqueue.CanvasID]int{}
	pages := 0
	for place := (eventqueue.Scope{}); ; {
		found, next, err := r.store.Runnable(testenv.Context(t), place, []eventqueue.CanvasID{canvas})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			seen[e.Canvas]++
		}
		pages++
		if place = next; place == (eventqueue.Scope{}) || pages == 10 {
			break
		}
	}
	if len(seen) != 150 || seen[canvas] != 0 || pages != 3 {
		t.Errorf("%d pages with %d canvases, and %d events of the busy one; want 3 with 150, and 0", pages, len(seen), seen[canvas])
	}
}

// TestRunnableCostsTheSameInABacklog asks often enough for a plan to be kept, then
// fills the table: the look still reads what it returns, and not the table.
func TestRunnableCostsTheSameInABacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	looker := r.withConns(1)
	blocks := func(looks int) int {
		t.Helper()
		count := func() int {
			looker.flush()
			return one[int](looker, `SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit
				FROM pg_statio_user_tables WHERE relname = 'events_v2'`)
		}
		before := count()
		for range looks {
			if _, _, err := looker.store.Runnable(ctx, eventqueue.Scope{}, []eventqueue.CanvasID{canvas}); err != nil {
				t.Fatal(err)
			}
		}
		return count() - before
	}
	e := event()
	e.Canvas = another
	for range 100 {
		r.insert(event(), e)
	}
	r.exec(`VACUUM ANALYZE events_v2`)
	few := blocks(20)
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at)
		SELECT canvas_id, module, name, modifier, value, now() FROM events_v2, generate_series(1, 300) WHERE canvas_id = $1`, [16]byte(canvas))
	many := blocks(20)
	t.Logf("20 looks read %d blocks, and then %d", few, many)
	if few == 0 || many > 20*(few+64) {
		t.Errorf("20 looks read %d blocks beside a backlog of 30,000 events, and %d beside one", many, few)
	}
}
