package maintenance_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
)

// TestIdleWalkCostsTheSame (I12, I20): rows that wait for something else are read
// at one pace, however many there are; rows that may be lost do not wait.
func TestIdleWalkCostsTheSame(t *testing.T) {
	t.Parallel()
	reads := func(pages, live int) (n int) {
		synctest.Test(t, func(t *testing.T) {
			e := &endless{Pages: rig.NewPages(0, 0), pages: pages, live: live}
			stop := running(t, e, e, maintenance.RelayConfig{})
			<-time.After(time.Minute)
			stop()
			n = e.reads
		})
		return n
	}
	few, many, live := reads(5, 0), reads(5000, 0), reads(5000, eventqueue.MaxPublish)
	if many > few*3/2 {
		t.Errorf("in a minute the relay reads %d pages of 5, and %d of 5000 with nothing to do", few, many)
	}
	if live < 5000 {
		t.Errorf("in a minute the relay reads %d pages of 5000 that may be lost", live)
	}
}

// TestWalkRestsAfterLookingOnly (I2, I20): pages with lost notifications follow each other at
// once, also where most of their rows wait for something else; after the others the walk rests.
func TestWalkRestsAfterLookingOnly(t *testing.T) {
	t.Parallel()
	const pages = 1000
	walk := func(live, lost int) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			e := &endless{Pages: rig.NewPages(0, 0), pages: pages, live: live, lost: lost, walked: make(chan time.Duration, 1)}
			running(t, e, e, maintenance.RelayConfig{})
			took = <-e.walked
		})
		return took
	}
	const reading = pages * pageTakes
	for name, live := range map[string]int{"that run": eventqueue.MaxPublish, "that wait": 0} {
		if took := walk(live, 1); took > reading {
			t.Errorf("a walk over events %s, with one lost on each page, takes %s, want %s", name, took, reading)
		}
		if took := walk(live, 0); took < 4*reading {
			t.Errorf("a walk over events %s, with nothing lost, takes %s, want %s at least", name, took, 4*reading)
		}
	}
}

// endless has many pages, on each of which as many notifications are lost.
type endless struct {
	*rig.Pages
	pages, live, reads int
	lost               int
	walked             chan time.Duration // how long the first walk took; nil: nobody asks
	began              time.Time
}

const pageTakes = time.Millisecond // of virtual time, as a statement takes

func (e *endless) Sweep(_ context.Context, after eventqueue.EventID, _ int, _ time.Duration) (maintenance.Swept, error) {
	if e.reads == 0 {
		e.began = time.Now()
	}
	<-time.After(pageTakes)
	e.reads++
	if e.reads == e.pages && e.walked != nil {
		e.walked <- time.Since(e.began)
	}
	lost := slices.Repeat([]eventqueue.Notification{{Event: after + 1, Canvas: rig.Canvas}}, e.lost)
	return maintenance.Swept{Lost: lost, Next: (after + 1) % eventqueue.EventID(e.pages), Read: 1, Live: e.live}, nil
}

func (e *endless) Publish(context.Context, []eventqueue.Notification) error { return nil }

// many has a round of many parts.
type many struct {
	*rig.Pages
	reads int
}

const partTakes = 10 * time.Millisecond

func (m *many) TakeRound(_ context.Context, after maintenance.RoundPlace, _ time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	<-time.After(partTakes) // of virtual time, as a statement takes
	m.reads++
	after.Run = (after.Run + 1) % 100_000
	return nil, after, nil
}

// TestRoundOverManyRowsRests (I12): one that has a hundred thousand parts leaves half of the
// time to others.
func TestRoundOverManyRowsRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &many{Pages: rig.NewPages(0, 0)}
		stop := running(t, m, m, maintenance.RelayConfig{})
		<-time.After(time.Minute)
		stop()
		if half := int(time.Minute / partTakes / 2); m.reads > half+1 || m.reads < half/2 {
			t.Errorf("in a minute there are %d queries of %s each, want at most %d", m.reads, partTakes, half)
		}
	})
}

// hearing is a notifier that reports how many notifications of other canvases it was given
// before one of its canvas, or that these are too many.
type hearing struct {
	canvas eventqueue.CanvasID
	most   int
	heard  chan int

	mu     sync.Mutex
	before int
}

func (h *hearing) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := func(n eventqueue.Notification) bool { return n.Canvas == h.canvas }
	if h.before > h.most || slices.ContainsFunc(notifications, of) {
		select {
		case h.heard <- h.before:
		default:
		}
	}
	h.before += len(notifications)
	return nil
}

// TestRelayServesEveryCanvas (I20): one has so much pending, or lost, that it takes the
// relay a minute; another's event is notified in between. It is in virtual time, in which
// the rate of publishing is the only thing that takes any.
func TestRelayServesEveryCanvas(t *testing.T) {
	t.Parallel()
	const many = 30_000
	for name, mode := range map[string]eventqueue.NotifyMode{"pending": eventqueue.NotifyModeLater, "lost": eventqueue.NotifyModeSelf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
				store := pgstore.New(pool)
				events := slices.Repeat([]eventqueue.NewEvent{rig.Event(`1`)}, many+1)
				for i := range many {
					events[i].Canvas = beside
				}
				if _, err := store.Insert(t.Context(), nil, events, mode); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Hour) // in silence
				h := &hearing{canvas: rig.Canvas, most: many / 12, heard: make(chan int, 1)}
				running(t, store, h, maintenance.RelayConfig{PerSecond: many / 60})
				if before := <-h.heard; before > h.most {
					t.Errorf("%d of %d events of the other canvas were notified before", before, many)
				}
			})
		})
	}
}
