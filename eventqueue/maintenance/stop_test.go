package maintenance_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/internal/backoff"
)

// running runs a relay until the returned function is called, which waits for it, or the test ends.
func running(t *testing.T, store maintenance.RelayStore, notifier eventqueue.Publisher, config maintenance.RelayConfig) (stop func()) {
	t.Helper()
	relay, err := maintenance.NewRelay(store, notifier, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() {
		if err := relay.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() {
		cancel()
		runs.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// hung is a store, and a notifier, whose calls for what was taken may answer nothing. It has
// pages pending, and one lost in each search.
type hung struct {
	behind
	database, notifier bool
	publishes, marks   time.Duration // how long publishing, and marking as pending, take unless they hang
	due                int           // pages that are pending
	cut                int           // takes of due events that lose their answers, before the others
	silent             bool          // the takes of due events after these are never answered

	mu        sync.Mutex
	searched  map[maintenance.RoundStage]bool
	published int
	marked    map[eventqueue.EventID]bool
}

func page(first eventqueue.EventID) (p []eventqueue.Notification) {
	for id := first; id < first+eventqueue.MaxPublish; id++ {
		p = append(p, eventqueue.Notification{Event: id, Canvas: beside})
	}
	return p
}

func (h *hung) TakeDue(ctx context.Context, _ time.Duration, _ int, await maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	over := await([]eventqueue.EventID{1})
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.cut > 0:
		h.cut--
		err := errors.New("the connection was cut")
		over(err)
		return nil, err
	case h.silent:
		h.mu.Unlock()
		<-ctx.Done()
		h.mu.Lock()
		over(ctx.Err())
		return nil, ctx.Err()
	}
	over(nil)
	if h.due == 0 {
		return nil, nil
	}
	h.due--
	return page(eventqueue.EventID(10_000 * (h.due + 1))), nil
}

func (h *hung) TakeRound(_ context.Context, after maintenance.RoundPlace, _ time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.searched[after.Stage] {
		return nil, maintenance.RoundPlace{}, nil
	}
	h.searched[after.Stage] = true
	return page(eventqueue.EventID(100_000 * (after.Stage + 1))), maintenance.RoundPlace{}, nil
}

func (h *hung) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	takes := time.NewTimer(h.publishes)
	defer takes.Stop()
	var answered <-chan time.Time
	if !h.notifier {
		answered = takes.C
	}
	select {
	case <-answered:
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.published += len(notifications)
	return nil
}

func (h *hung) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	if h.database {
		<-ctx.Done()
		return ctx.Err()
	}
	if !backoff.Sleep(ctx, h.marks) {
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		h.marked[id] = true
	}
	return nil
}

func (h *hung) LeavePending(ctx context.Context, ids []eventqueue.EventID) error {
	return h.MarkPending(ctx, ids)
}

// stopAt stops a relay on h at the given time from its start, and returns how long that took.
func (h *hung) stopAt(t *testing.T, after time.Duration, config maintenance.RelayConfig) time.Duration {
	h.searched, h.marked = map[maintenance.RoundStage]bool{}, map[eventqueue.EventID]bool{}
	stop := running(t, h, h, config)
	<-time.After(after)
	began := time.Now()
	stop()
	return time.Since(began)
}

// TestRelayStopsInTime (I13, I19): three seconds, whatever hangs. What cannot be published is
// pending by then, if the database answers.
func TestRelayStopsInTime(t *testing.T) {
	t.Parallel()
	const taken = 4 * eventqueue.MaxPublish // of one page that is pending, and of one in each round
	for name, c := range map[string]struct {
		notifier, database bool
		due, perSecond     int
		marked             int
	}{
		"the notifier hangs": {true, false, 1, 0, taken},
		"both hang":          {true, true, 1, 0, 0},
		"the database hangs, and the rate is low": {false, true, 2, 100, 0},
		"both hang, and the rate is low":          {true, true, 2, 100, 0},
	} {
		for _, after := range []time.Duration{0, time.Millisecond, 2 * time.Second, 6 * time.Second, 9 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				h := &hung{database: c.database, notifier: c.notifier, due: c.due}
				if took := h.stopAt(t, after, maintenance.RelayConfig{PerSecond: c.perSecond}); took > 3*time.Second {
					t.Errorf("%s: a stop after %s took %s", name, after, took)
				}
				if after == 2*time.Second && len(h.marked) != c.marked {
					t.Errorf("%s: %d notifications are pending again, want %d", name, len(h.marked), c.marked)
				}
			})
		}
	}
}

// TestRelayStopsInTimeWithoutAnswers (I13, I19): three seconds for all of it, also where takes of due
// events have lost their answers before, or never get one, and what they may have taken cannot be marked.
func TestRelayStopsInTimeWithoutAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut      int
		silent   bool
		notifier bool
		due      int
	}{
		"answers were lost, and the notifier hangs": {cut: 1, notifier: true, due: 1},
		"no answer comes": {silent: true},
		"answers were lost, and then no answer comes":  {cut: 2, silent: true},
		"answers were lost, and the database is quick": {cut: 1},
	} {
		for after := time.Duration(0); after < 12*time.Second; after += 250 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				h := &hung{database: true, notifier: c.notifier, due: c.due, cut: c.cut, silent: c.silent}
				if took := h.stopAt(t, after, maintenance.RelayConfig{}); took > 3*time.Second {
					t.Errorf("%s: a stop after %s took %s", name, after, took)
				}
			})
		}
	}
}

// TestStoppingRelayPublishesItsBatch (I13), where the notifier answers.
func TestStoppingRelayPublishesItsBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hung{publishes: time.Second, due: 1}
		h.stopAt(t, 10*time.Millisecond, maintenance.RelayConfig{})
		if h.published != 4*eventqueue.MaxPublish || len(h.marked) != 0 {
			t.Errorf("%d notifications are published and %d pending again", h.published, len(h.marked))
		}
	})
}

// TestRelayMarksTheRestAtAStop (I13): a page that the rate splits into several publishes is published in part when the relay stops, and
// the rest is pending again.
func TestRelayMarksTheRestAtAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hung{publishes: time.Second}
		h.stopAt(t, 10*time.Millisecond, maintenance.RelayConfig{PerSecond: 5 * eventqueue.MaxPublish})
		if rest := 3*eventqueue.MaxPublish - h.published; h.published == 0 || rest == 0 || len(h.marked) != rest {
			t.Errorf("%d notifications are published and %d pending again, want all of %d, and some of each", h.published, len(h.marked), 3*eventqueue.MaxPublish)
		}
	})
}

// TestStoppingRelayHasTimeToMark (I2, I13): marking as pending may take most of a second, whatever it comes after.
func TestStoppingRelayHasTimeToMark(t *testing.T) {
	t.Parallel()
	const takes = 800 * time.Millisecond
	for name, c := range map[string]struct {
		h         *hung
		perSecond int
		pages     int
	}{
		"after a publish that hangs": {&hung{notifier: true, due: 1, marks: takes}, 0, 4},
		"after a publish":            {&hung{publishes: time.Second, marks: takes}, 5 * eventqueue.MaxPublish, 3},
		"beyond the rate":            {&hung{marks: takes}, 500, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if took := c.h.stopAt(t, 10*time.Millisecond, maintenance.RelayConfig{PerSecond: c.perSecond}); took > 3*time.Second {
					t.Errorf("the stop took %s", took)
				}
				if n := len(c.h.marked); n == 0 || n+c.h.published != c.pages*eventqueue.MaxPublish {
					t.Errorf("%d notifications are published and %d pending again, want all of %d", c.h.published, n, c.pages*eventqueue.MaxPublish)
				}
			})
		})
	}
}

// flooded is a store that wakes the relay every millisecond, and in which an event becomes pending
// at some time.
type flooded struct {
	behind
	pendingAt time.Time

	mu    sync.Mutex
	asked int
	taken bool
}

func (f *flooded) Listen(ctx context.Context, wake func()) error {
	for ctx.Err() == nil {
		wake()
		<-time.After(time.Millisecond)
	}
	return nil
}

func (f *flooded) TakeDue(context.Context, time.Duration, int, maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.taken || time.Now().Before(f.pendingAt) {
		return nil, nil
	}
	f.taken = true
	return []eventqueue.Notification{{Event: 1, Canvas: beside}}, nil
}

func (f *flooded) TakeRound(context.Context, maintenance.RoundPlace, time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	return nil, maintenance.RoundPlace{}, nil
}

// TestFloodOfWakeUpsCostsFewStatements (I12, I13): everybody who may connect can send NOTIFY. However often that
// happens, the relay sends a bounded number of statements, and an event that becomes pending
// meanwhile is notified within a second.
func TestFloodOfWakeUpsCostsFewStatements(t *testing.T) {
	t.Parallel()
	const flood = 100 // seconds
	for _, into := range []time.Duration{0, 1, 2, 3, 4} {
		synctest.Test(t, func(t *testing.T) {
			pendingAt := time.Now().Add((flood + into) * time.Second)
			store := &flooded{pendingAt: pendingAt}
			published := make(publishedAt, 1)
			running(t, store, published, maintenance.RelayConfig{})
			<-time.After(flood*time.Second - time.Millisecond)
			store.mu.Lock()
			if store.asked > 20*flood {
				t.Errorf("a flood of wake-ups led to %d statements in %d s", store.asked, flood)
			}
			store.mu.Unlock()
			if late := (<-published).Sub(pendingAt); late > time.Second {
				t.Errorf("after a flood of wake-ups an event was notified %s late", late)
			}
		})
	}
}

// streamed is a store in which each take finds an event, and which wakes the relay every millisecond.
type streamed struct{ flooded }

func (s *streamed) TakeDue(context.Context, time.Duration, int, maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	return crowd(1), nil
}

// TestStreamOfEventsIsNotHeldBack (I13): only passes that find nothing are slowed down.
func TestStreamOfEventsIsNotHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		published := &counter{}
		stop := running(t, &streamed{}, published, maintenance.RelayConfig{})
		const seconds = 20
		<-time.After(seconds * time.Second)
		stop()
		if n := published.published.Load(); n < 50*seconds {
			t.Errorf("%d passes published something in %d s of a stream", n, seconds)
		}
	})
}

// returned is a notifier that refuses until a time, and the store of what is pending.
type returned struct {
	behind
	backAt time.Time
	last   time.Time // of the last publish that it took
	left   int
}

func (r *returned) TakeDue(_ context.Context, _ time.Duration, limit int, _ maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	n := min(r.left, limit)
	r.left -= n
	return crowd(n), nil
}

func (r *returned) TakeRound(context.Context, maintenance.RoundPlace, time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	return nil, maintenance.RoundPlace{}, nil
}

func (r *returned) MarkPending(_ context.Context, ids []eventqueue.EventID) error {
	r.left += len(ids)
	return nil
}

func (r *returned) Publish(context.Context, []eventqueue.Notification) error {
	if time.Now().Before(r.backAt) {
		return errors.New("down")
	}
	r.last = time.Now()
	return nil
}

// TestRelayPublishesTheRestAfterItsProbe (I13): as soon as a notifier that was down takes one notification, all others follow.
func TestRelayPublishesTheRestAfterItsProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &returned{backAt: time.Now().Add(time.Minute), left: 100}
		stop := running(t, r, r, maintenance.RelayConfig{Interval: 4 * time.Minute})
		<-time.After(5 * time.Minute)
		stop()
		if late := r.last.Sub(r.backAt); r.left != 0 || late > 3*time.Second {
			t.Errorf("%d are left, and the last one was published %s after the notifier was back", r.left, late)
		}
	})
}
