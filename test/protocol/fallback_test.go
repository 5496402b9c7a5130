package protocol

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
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

// TestTheDatabaseStandsInForTheNotifier (I2, I12, I13) while it is down, and not
// before and not after.
func TestTheDatabaseStandsInForTheNotifier(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		const page = eventqueue.MaxPublish
		l, notifier := newLedger(1, 1), &silentNotifier{changed: make(chan struct{})}
		receiver, err := fallback.New(notifier, l, fallback.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		var delivered sync.Map
		deliveries := func() (n int) {
			delivered.Range(func(any, any) bool { n++; return true })
			return n
		}
		ctx, stop := context.WithCancel(s.t.Context())
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
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.asked
		}
		defer func() { stop(); pulling.Wait() }()

		pass(time.Minute)
		notifier.set(true)
		pass(time.Second) // a hiccup
		notifier.set(false)
		pass(time.Minute)
		if asked() != 0 || deliveries() != 0 {
			s.t.Errorf("while the notifier delivers: %d statements, %d deliveries", asked(), deliveries())
		}
		notifier.set(true)
		pass(time.Minute)
		if n := deliveries(); n != 2*page {
			s.t.Errorf("while the notifier is down: %d deliveries, want the %d that are due or lost", n, 2*page)
		}
		notifier.set(false)
		pass(time.Minute)
		before := asked()
		pass(time.Minute)
		if more := asked() - before; more != 0 {
			s.t.Errorf("the notifier is back and the database was queried %d times more", more)
		}
		if err := receiver.Ack(ctx, []eventqueue.Delivery{{AckID: "the notifier's own"}}); err != nil {
			s.t.Errorf("the notifier is back and does not get the acknowledgement: %v", err)
		}
	})
}

// crowded is a ledger in which one canvas has a long walk of lost notifications, and
// another one, which only a round finds, behind some parts of it.
type crowded struct {
	*ledger
	parts int
}

func (c *crowded) TakeLost(_ context.Context, after eventqueue.EventID, _ int, _ time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	return []eventqueue.Notification{{Event: after + 1, Canvas: another}}, after + 1, nil
}

func (c *crowded) TakeRound(_ context.Context, after maintenance.RoundPlace, _ time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	<-time.After(20 * time.Millisecond) // of virtual time, as a statement takes
	if after.Run++; int(after.Run) < c.parts {
		return nil, after, nil
	}
	return []eventqueue.Notification{{Event: 1 << 40, Canvas: canvas}}, maintenance.RoundPlace{}, nil
}

// TestADatabaseThatStandsInServesEveryCanvas (I20): what is lost of one canvas is found
// beside a walk over another's that has no end.
func TestADatabaseThatStandsInServesEveryCanvas(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		notifier := &silentNotifier{changed: make(chan struct{}), down: true}
		receiver, err := fallback.New(notifier, &crowded{newLedger(0, 0), 20}, fallback.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		ctx, stop := context.WithCancel(s.t.Context())
		defer stop()
		began := time.Now()
		for {
			deliveries, err := receiver.Pull(ctx, 10)
			if err != nil {
				s.t.Fatal(err)
			}
			for _, d := range deliveries {
				if d.Canvas == canvas {
					return
				}
			}
			if took := time.Since(began); took > time.Minute {
				s.t.Fatalf("nothing of the other canvas after %s", took)
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
	*ledger
	notifier *quick

	mu        sync.Mutex
	delivered int
	acks      bool
	wake      func(lost bool) // as somebody who could not publish does, or a relay
}

func newStand(s *script, l *ledger, max int, pause time.Duration) *stand {
	st := &stand{ledger: l, notifier: &quick{silentNotifier: &silentNotifier{changed: make(chan struct{})}}}
	receiver, err := fallback.New(st.notifier, l, fallback.Config{Listen: func(ctx context.Context, wake func(lost bool)) error {
		st.wake = wake
		<-ctx.Done()
		return ctx.Err()
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.t.Context())
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
	s.t.Cleanup(func() { stop(); running.Wait() })
	pass(time.Millisecond)
	return st
}

// since are the statements and the deliveries since the last call.
func (st *stand) since() (asked, delivered int) {
	st.ledger.mu.Lock()
	asked, st.asked = st.asked, 0
	st.ledger.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	delivered, st.delivered = st.delivered, 0
	return asked, delivered
}

// rests requires that, after a while, the database is asked nothing for a minute.
func (st *stand) rests(t *testing.T, after time.Duration, otherwise string) {
	t.Helper()
	pass(after)
	st.since()
	pass(time.Minute)
	if asked, _ := st.since(); asked != 0 {
		t.Errorf(otherwise, asked)
	}
}

// TestANotifierThatAnswersAtOnceMakesNoHotLoop (I11), whether it has nothing or fails, and a
// notifier that is well has nothing asked of the database (I12).
func TestANotifierThatAnswersAtOnceMakesNoHotLoop(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		st := newStand(s, newLedger(1, 0), 10, 0)
		pass(time.Minute)
		if pulls := st.notifier.answer(nil, nil); pulls > 1000 {
			s.t.Errorf("an empty notifier was pulled from %d times in a minute", pulls)
		}
		if asked, _ := st.since(); asked != 0 {
			s.t.Errorf("the database was queried %d times beside a notifier that works", asked)
		}
		st.notifier.answer(errors.New("down"), nil)
		pass(2 * time.Second)
		if pulls := st.notifier.answer(errors.New("down"), nil); pulls > 20 {
			s.t.Errorf("a notifier that fails was pulled from %d times in two seconds", pulls)
		}
	})
}

// TestANotifierThatHasLostItsTopicIsFoundOut (I19): it delivers nothing, and only a check of it
// fails. The database stands in, until the notifier is well again.
func TestANotifierThatHasLostItsTopicIsFoundOut(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		st := newStand(s, newLedger(1, 0), eventqueue.MaxPublish, 0)
		pass(time.Minute)
		st.since()
		st.notifier.answer(nil, errors.New("the topic is gone"))
		pass(10 * time.Second)
		if _, delivered := st.since(); delivered != eventqueue.MaxPublish {
			s.t.Errorf("%d of %d due events were found", delivered, eventqueue.MaxPublish)
		}
		st.notifier.answer(nil, nil)
		st.rests(s.t, 20*time.Second, "the notifier is back and the database was queried %d times")
	})
}

// TestWhoCouldNotPublishHasTheDatabaseAsked (I12, I19): all that is due is found, page
// after page; however often a program reports that, the database is asked a few times a second;
// and some seconds after the last time nobody asks it.
func TestWhoCouldNotPublishHasTheDatabaseAsked(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		const pages = 40
		st := newStand(s, newLedger(pages, 0), eventqueue.MaxPublish, 0)
		st.wake(false)
		pass(5 * time.Second)
		if _, delivered := st.since(); delivered != pages*eventqueue.MaxPublish {
			s.t.Errorf("%d of %d due events were found in five seconds", delivered, pages*eventqueue.MaxPublish)
		}
		for range 1000 {
			st.wake(false)
			pass(10 * time.Millisecond)
		}
		if asked, _ := st.since(); asked < 10 || asked > 60 {
			s.t.Errorf("the database was asked %d times in ten seconds, in which it was asked for a thousand times", asked)
		}
		st.rests(s.t, 20*time.Second, "the database was asked %d times long after")
	})
}

// TestWhatIsInHandIsNotSearchedFor (I11): a worker that does not get on with what it has
// taken is given little more.
func TestWhatIsInHandIsNotSearchedFor(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		st := newStand(s, newLedger(0, 1000), eventqueue.MaxPublish, time.Second)
		st.notifier.answer(errors.New("down"), errors.New("down"))
		pass(time.Minute)
		if _, delivered := st.since(); delivered == 0 || delivered > 10*eventqueue.MaxPublish {
			s.t.Errorf("in a minute a worker that answers nothing was given %d events", delivered)
		}
	})
}

// TestWhatIsPutOffHasABound (I11): a worker that puts off what it is given, as one that
// knows no handler for it does, leaves the rest to others.
func TestWhatIsPutOffHasABound(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		const pages, bound = 200, 51
		l := newLedger(pages, 0)
		receiver, err := fallback.New(&silentNotifier{changed: make(chan struct{}), down: true}, l, fallback.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(s.t.Context(), 30*time.Second)
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
				s.t.Fatal(err)
			}
		}
		if n := len(taken); n != bound*eventqueue.MaxPublish {
			s.t.Errorf("%d events were taken and put off, want %d", n, bound*eventqueue.MaxPublish)
		}
	})
}

// stuck is a ledger whose statements are not answered for as long as somebody waits, or for an hour.
type stuck struct{ *ledger }

func (stuck) TakeDue(ctx context.Context, _ time.Duration, _ int, _ maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	<-ctx.Done()
	return nil, ctx.Err()
}

// fickle is a notifier that delivers something once it is no longer down.
type fickle struct{ *silentNotifier }

func (f *fickle) Pull(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	if _, err := f.state(); err == nil {
		return []eventqueue.Delivery{{Notification: eventqueue.Notification{Event: 1, Canvas: canvas}, AckID: "1"}}, nil
	}
	return f.silentNotifier.Pull(ctx, max)
}

func (f *fickle) Requeue(context.Context, []eventqueue.Delivery, time.Duration) error { return nil }

// TestADatabaseThatHangsDoesNotHideTheNotifier (I13, I19): a notifier that is back is used, though
// no statement is answered any more.
func TestADatabaseThatHangsDoesNotHideTheNotifier(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		notifier := &fickle{&silentNotifier{changed: make(chan struct{}), down: true}}
		receiver, err := fallback.New(notifier, stuck{newLedger(0, 0)}, fallback.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(s.t.Context(), 2*time.Minute)
		defer stop()
		var pulling sync.WaitGroup
		delivered := make(chan struct{})
		pulling.Go(func() {
			for ctx.Err() == nil {
				if deliveries, _ := receiver.Pull(ctx, 1); len(deliveries) > 0 { // a failure is what it is to get over
					close(delivered)
					return
				}
			}
		})
		pass(20 * time.Second)
		notifier.set(false)
		pulling.Wait()
		select {
		case <-delivered:
		default:
			s.t.Error("the notifier was not pulled from any more")
		}
	})
}

// TestASearchForWhatIsLostEnds (I12): a relay that finds something lost has it searched for
// by workers whose notifier delivers nothing, for a while, also when it is found again and
// again, as an event that nobody has a handler for is; and by no others.
func TestASearchForWhatIsLostEnds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		st := newStand(s, newLedger(0, 1), eventqueue.MaxPublish, 0)
		st.mu.Lock()
		st.acks = true
		st.mu.Unlock()
		st.wake(true)
		pass(20 * time.Second)
		if asked, _ := st.since(); asked != 0 {
			s.t.Errorf("the database was asked %d times by a worker that has just begun", asked)
		}
		st.wake(true)
		pass(20 * time.Second)
		if asked, delivered := st.since(); asked == 0 || delivered == 0 {
			s.t.Errorf("in %d searches %d lost events were found", asked, delivered)
		}
		st.rests(s.t, 2*time.Minute, "the database was asked %d times long after")
	})
}

// TestASearchEndsWhenTheNotifierDelivers (I12), and none begins beside a notifier that does.
func TestASearchEndsWhenTheNotifierDelivers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		notifier, l := &fickle{&silentNotifier{changed: make(chan struct{})}}, newLedger(0, 0)
		var report func(lost bool)
		receiver, err := fallback.New(notifier, l, fallback.Config{Listen: func(ctx context.Context, wake func(lost bool)) error {
			report = wake
			<-ctx.Done()
			return ctx.Err()
		}})
		if err != nil {
			s.t.Fatal(err)
		}
		ctx, stop := context.WithCancel(s.t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = receiver.Attend(ctx) }) // the notifier is fit
		defer running.Wait()
		defer stop()
		pass(time.Minute)
		report(true) // nothing has been delivered: nobody has pulled
		for range 100 {
			if _, err := receiver.Pull(ctx, 1); err != nil {
				s.t.Fatal(err)
			}
			pass(time.Second)
			report(true)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.asked > 2 {
			s.t.Errorf("beside a notifier that delivers the database was queried %d times", l.asked)
		}
	})
}

// counted is a database that counts the searches for lost notifications, and whose relays reach
// one worker.
type counted struct {
	*pgstore.Store
	mu       sync.Mutex
	searches int
	wake     func(lost bool)
}

func (c *counted) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.searches++
}

func (c *counted) searched() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, c.searches = c.searches, 0
	return n
}

func (c *counted) Awaiting(await maintenance.AwaitTake) maintenance.Searches {
	return countedSearches{c.Store.Awaiting(await), c}
}

type countedSearches struct {
	maintenance.Searches
	of *counted
}

func (s countedSearches) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	s.of.count()
	return s.Searches.TakeLost(ctx, after, limit, lostAfter)
}

// ReportLost implements maintenance.LostReporter.
func (c *counted) ReportLost(context.Context) error { c.wake(true); return nil }

// hole takes what is published, and nobody gets it.
type hole struct{}

func (hole) Publish(context.Context, []eventqueue.Notification) error { return nil }

// TestANotifierThatDeliversNothingIsFoundOut (I13, I19): it takes everything, answers every
// pull with nothing, and passes every check. The first events run when the relay has
// found that they are lost, those after them soon, and nothing is searched for when there
// is no more.
func TestANotifierThatDeliversNothingIsFoundOut(t *testing.T) {
	t.Parallel()
	inVirtualTimeOn(t, func(s *script, pool *pgxpool.Pool) {
		store := &counted{Store: pgstore.New(pool), wake: func(bool) {}}
		queue, err := eventqueue.New(store, hole{}, eventqueue.QueueConfig{})
		if err != nil {
			s.t.Fatal(err)
		}
		receiver, err := fallback.New(&silentNotifier{changed: make(chan struct{})}, store, fallback.Config{Listen: func(ctx context.Context, wake func(lost bool)) error {
			store.wake = wake
			<-ctx.Done()
			return ctx.Err()
		}})
		if err != nil {
			s.t.Fatal(err)
		}
		ran := func() (n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.runs)
		}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		w, err := worker.New(queue, store.Store, receiver, s.handlers, worker.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		relay, err := maintenance.NewRelay(store, hole{}, maintenance.RelayConfig{})
		if err != nil {
			s.t.Fatal(err)
		}
		ctx, stop := context.WithCancel(s.t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = w.Run(ctx) })
		running.Go(func() { _ = relay.Run(ctx) })
		defer running.Wait()
		defer stop()
		pass(time.Minute)
		emit := func() {
			for range 10 {
				if _, err := queue.Emit(ctx, event()); err != nil {
					s.t.Fatal(err)
				}
			}
		}
		emit()
		pass(90 * time.Second) // the relay interval and the lock timeout
		if n := ran(); n != 10 {
			s.t.Errorf("%d of 10 events ran", n)
		}
		for want := 20; want <= 60; want += 10 {
			pass(10 * time.Second)
			emit()
			pass(5 * time.Second)
			if n := ran(); n != want {
				s.t.Errorf("%d of %d events ran", n, want)
			}
		}
		pass(2 * time.Minute)
		store.searched()
		pass(time.Hour)
		if n := store.searched(); n != 0 {
			s.t.Errorf("%d searches in an hour without events", n)
		}
	})
}
