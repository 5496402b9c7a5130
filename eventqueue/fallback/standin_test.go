package fallback_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/test/rig"
)

// silentNotifier is a notifier that delivers nothing and may be down. Its other methods
// panic.
type silentNotifier struct {
	eventqueue.Receiver

	mu      sync.Mutex
	down    bool
	changed chan struct{}
}

func (d *silentNotifier) set(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *silentNotifier) state() (<-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return d.changed, errors.New("down")
	}
	return d.changed, nil
}

// Pull finds nothing after some seconds, as Pub/Sub does, or that the notifier is
// down.
func (d *silentNotifier) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	changed, err := d.state()
	if err != nil {
		return nil, err
	}
	select {
	case <-changed:
		_, err = d.state()
		return nil, err
	case <-time.After(5 * time.Second):
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Ack needs a notifier that is not down.
func (d *silentNotifier) Ack(context.Context, []eventqueue.Delivery) error {
	_, err := d.state()
	return err
}

// Check reports whether the notifier is down.
func (d *silentNotifier) Check(context.Context) error { _, err := d.state(); return err }

func newSilent(down bool) *silentNotifier {
	return &silentNotifier{changed: make(chan struct{}), down: down}
}

// TestFallbackFindsEventsWhileTheNotifierFails (I2, I12, I13) while it is down, and not
// before and not after.
func TestFallbackFindsEventsWhileTheNotifierFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const page = eventqueue.MaxPublish
		p, notifier := rig.NewPages(1, 1), newSilent(false)
		receiver, err := fallback.New(notifier, p, fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var delivered sync.Map
		deliveries := func() (n int) {
			delivered.Range(func(any, any) bool { n++; return true })
			return n
		}
		ctx, stop := context.WithCancel(t.Context())
		var pulling sync.WaitGroup
		for range 2 { // as a worker does
			pulling.Go(func() {
				for ctx.Err() == nil {
					deliveries, err := receiver.Pull(ctx, page)
					for _, d := range deliveries {
						delivered.Store(d.Event, true)
					}
					if err != nil {
						<-time.After(100 * time.Millisecond)
					}
				}
			})
		}
		asked := func() int {
			p.Mu.Lock()
			defer p.Mu.Unlock()
			return p.Asked
		}
		defer func() { stop(); pulling.Wait() }()

		rig.Pass(time.Minute)
		notifier.set(true)
		rig.Pass(time.Second) // a hiccup
		notifier.set(false)
		rig.Pass(time.Minute)
		if asked() != 0 || deliveries() != 0 {
			t.Errorf("while the notifier delivers: %d statements, %d deliveries", asked(), deliveries())
		}
		notifier.set(true)
		rig.Pass(time.Minute)
		if n := deliveries(); n != 2*page {
			t.Errorf("while the notifier is down: %d deliveries, want the %d that are due or lost", n, 2*page)
		}
		notifier.set(false)
		rig.Pass(time.Minute)
		before := asked()
		rig.Pass(time.Minute)
		if more := asked() - before; more != 0 {
			t.Errorf("the notifier is back and the database was queried %d times more", more)
		}
		if err := receiver.Ack(ctx, []eventqueue.Delivery{{AckID: "the notifier's own"}}); err != nil {
			t.Errorf("the notifier is back and does not get the acknowledgement: %v", err)
		}
	})
}

// crowded are pages where one canvas has a long walk of lost notifications, and
// another one, which only a round finds, behind some parts of it.
type crowded struct {
	*rig.Pages
	parts int
}

func (c *crowded) TakeLost(_ context.Context, after eventqueue.EventID, _ int, _ time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	return []eventqueue.Notification{{Event: after + 1, Canvas: eventqueue.CanvasID{1}}}, after + 1, nil
}

func (c *crowded) TakeRound(_ context.Context, after maintenance.RoundPlace, _ time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	<-time.After(20 * time.Millisecond) // of virtual time, as a statement takes
	if after.Run++; int(after.Run) < c.parts {
		return nil, after, nil
	}
	return []eventqueue.Notification{{Event: 1 << 40, Canvas: rig.Canvas}}, maintenance.RoundPlace{}, nil
}

// TestFallbackServesEveryCanvas (I20): what is lost of one canvas is found
// beside a walk over another's that has no end.
func TestFallbackServesEveryCanvas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		notifier := newSilent(true)
		receiver, err := fallback.New(notifier, &crowded{rig.NewPages(0, 0), 20}, fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		began := time.Now()
		for {
			deliveries, err := receiver.Pull(ctx, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range deliveries {
				if d.Canvas == rig.Canvas {
					return
				}
			}
			if took := time.Since(began); took > time.Minute {
				t.Fatalf("nothing of the other canvas after %s", took)
			}
		}
	})
}

// quick is a notifier that answers every pull after a millisecond, and counts them.
type quick struct {
	*silentNotifier
	pulls         int
	fails, orphan error // what Pull and Check return
}

func (q *quick) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	q.mu.Lock()
	q.pulls++
	err := q.fails
	q.mu.Unlock()
	select {
	case <-time.After(time.Millisecond): // of virtual time
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *quick) Check(context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.orphan
}

func (q *quick) answer(fails, orphan error) (pulls int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fails, q.orphan = fails, orphan
	pulls, q.pulls = q.pulls, 0
	return pulls
}

// stand is a receiver that stands in for a quick notifier, of which somebody pulls.
type stand struct {
	*rig.Pages
	notifier *quick

	mu        sync.Mutex
	delivered int
	acks      bool
	wake      func(lost bool) // as somebody who could not publish does, or a relay
}

func newStand(t *testing.T, p *rig.Pages, max int, pause time.Duration) *stand {
	t.Helper()
	st := &stand{Pages: p, notifier: &quick{silentNotifier: newSilent(false)}}
	receiver, err := fallback.New(st.notifier, p, fallback.Config{Listen: func(ctx context.Context, wake func(lost bool)) error {
		st.wake = wake
		<-ctx.Done()
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = receiver.Attend(ctx) }) // the notifier is fit
	running.Go(func() {
		for ctx.Err() == nil {
			deliveries, _ := receiver.Pull(ctx, max) // it fails only at the end
			st.mu.Lock()
			st.delivered += len(deliveries)
			acks := st.acks
			st.mu.Unlock()
			if acks {
				_ = receiver.Ack(ctx, deliveries) // the notifier is well
			}
			<-time.After(pause)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
	rig.Pass(time.Millisecond)
	return st
}

// since are the statements and the deliveries since the last call.
func (st *stand) since() (asked, delivered int) {
	st.Mu.Lock()
	asked, st.Asked = st.Asked, 0
	st.Mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	delivered, st.delivered = st.delivered, 0
	return asked, delivered
}

// rests requires that, after a while, the database is asked nothing for a minute.
func (st *stand) rests(t *testing.T, after time.Duration, otherwise string) {
	t.Helper()
	rig.Pass(after)
	st.since()
	rig.Pass(time.Minute)
	if asked, _ := st.since(); asked != 0 {
		t.Errorf(otherwise, asked)
	}
}

// TestNotifierThatFailsAtOnceMakesNoHotLoop (I11), whether it has nothing or fails, and a
// notifier that is well has nothing asked of the database (I12).
func TestNotifierThatFailsAtOnceMakesNoHotLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := newStand(t, rig.NewPages(1, 0), 10, 0)
		rig.Pass(time.Minute)
		if pulls := st.notifier.answer(nil, nil); pulls > 1000 {
			t.Errorf("an empty notifier was pulled from %d times in a minute", pulls)
		}
		if asked, _ := st.since(); asked != 0 {
			t.Errorf("the database was queried %d times beside a notifier that works", asked)
		}
		st.notifier.answer(errors.New("down"), nil)
		rig.Pass(2 * time.Second)
		if pulls := st.notifier.answer(errors.New("down"), nil); pulls > 20 {
			t.Errorf("a notifier that fails was pulled from %d times in two seconds", pulls)
		}
	})
}

// TestLostTopicIsDetected (I19): it delivers nothing, and only a check of it
// fails. The database stands in, until the notifier is well again.
func TestLostTopicIsDetected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := newStand(t, rig.NewPages(1, 0), eventqueue.MaxPublish, 0)
		rig.Pass(time.Minute)
		st.since()
		st.notifier.answer(nil, errors.New("the topic is gone"))
		rig.Pass(10 * time.Second)
		if _, delivered := st.since(); delivered != eventqueue.MaxPublish {
			t.Errorf("%d of %d due events were found", delivered, eventqueue.MaxPublish)
		}
		st.notifier.answer(nil, nil)
		st.rests(t, 20*time.Second, "the notifier is back and the database was queried %d times")
	})
}

// TestFallbackPollsAfterFailedPublish (I12, I19): all that is due is found, page
// after page; however often a program reports that, the database is asked a few times a second;
// and some seconds after the last time nobody asks it.
func TestFallbackPollsAfterFailedPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pages = 40
		st := newStand(t, rig.NewPages(pages, 0), eventqueue.MaxPublish, 0)
		st.wake(false)
		rig.Pass(5 * time.Second)
		if _, delivered := st.since(); delivered != pages*eventqueue.MaxPublish {
			t.Errorf("%d of %d due events were found in five seconds", delivered, pages*eventqueue.MaxPublish)
		}
		for range 1000 {
			st.wake(false)
			rig.Pass(10 * time.Millisecond)
		}
		if asked, _ := st.since(); asked < 10 || asked > 60 {
			t.Errorf("the database was asked %d times in ten seconds, in which it was asked for a thousand times", asked)
		}
		st.rests(t, 20*time.Second, "the database was asked %d times long after")
	})
}

// TestFallbackSkipsEventsInHand (I11): a worker that does not get on with what it has
// taken is given little more.
func TestFallbackSkipsEventsInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := newStand(t, rig.NewPages(0, 1000), eventqueue.MaxPublish, time.Second)
		st.notifier.answer(errors.New("down"), errors.New("down"))
		rig.Pass(time.Minute)
		if _, delivered := st.since(); delivered == 0 || delivered > 10*eventqueue.MaxPublish {
			t.Errorf("in a minute a worker that answers nothing was given %d events", delivered)
		}
	})
}

// TestHeldNotificationsAreBounded (I11): a worker that puts off what it is given, as one that
// knows no handler for it does, leaves the rest to others.
func TestHeldNotificationsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pages, bound = 200, 51
		receiver, err := fallback.New(newSilent(true), rig.NewPages(pages, 0), fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		taken := map[eventqueue.EventID]bool{}
		for {
			deliveries, err := receiver.Pull(ctx, eventqueue.MaxPublish)
			if err != nil {
				break
			}
			for _, d := range deliveries {
				taken[d.Event] = true
			}
			if err := receiver.Requeue(ctx, deliveries, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(taken); n != bound*eventqueue.MaxPublish {
			t.Errorf("%d events were taken and put off, want %d", n, bound*eventqueue.MaxPublish)
		}
	})
}
