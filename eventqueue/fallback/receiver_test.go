package fallback_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// switchable is an in-memory notifier that can be down.
type switchable struct {
	*memnotify.Notifier
	down atomic.Bool
}

var errDown = errors.New("down")

func (b *switchable) state() error {
	if b.down.Load() {
		return errDown
	}
	return nil
}

func (b *switchable) Check(context.Context) error { return b.state() }

func (b *switchable) set(down bool) {
	b.down.Store(down)
	// Inject also reaches the pulls that wait.
	b.Inject(memnotify.Faults{Publish: b.state, Pull: b.state, Ack: b.state, Requeue: b.state})
}

func TestWorkGoesOnWhileTheNotifierIsDown(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	b := &switchable{Notifier: r.Notifier}
	var err error
	if r.Queue, err = eventqueue.New(r.Store, b, eventqueue.QueueConfig{PublishRest: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if r.Receiver, err = fallback.New(b, r.Store, fallback.Config{After: 50 * time.Millisecond, Poll: 20 * time.Millisecond,
		Sweep: 50 * time.Millisecond, LostAfter: time.Millisecond, ProbeEvery: 20 * time.Millisecond, Logger: testenv.Logger(t)}); err != nil {
		t.Fatal(err)
	}
	failed := sync.Map{}
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		if _, again := failed.LoadOrStore(run.ID, true); !again && run.ID%3 == 0 {
			return errors.New("the first time")
		}
		return nil
	}, rig.Quick())
	completed := make(chan eventqueue.EventID, 1000)
	r.Start(worker.Config{Observe: func(out worker.Outcome) {
		if out.Label == machine.ExecutesToCompletion {
			completed <- out.Event
		}
	}})
	emit := func(n int) {
		t.Helper()
		r.Emit(r.Copies(n)...)
	}
	await := func(n int) {
		t.Helper()
		for range n {
			select {
			case <-completed:
			case <-testenv.Context(t).Done():
				t.Fatalf("waited for %d events", n)
			}
		}
	}
	emit(10)
	await(10)
	// Some are lost with the notifier, the others are emitted while it is down.
	b.Drop(10)
	emit(10)
	b.set(true)
	emit(100)
	emit(100)
	await(210)
	b.set(false)
	testenv.Eventually(t, "the queue publishes again", func() bool {
		emit(1)
		await(1)
		return b.Stats().Published > 20
	})
	emit(50)
	await(50)
	testenv.Eventually(t, "every row is gone", func() bool { return r.Waiting() == 0 })
	select {
	case id := <-completed:
		t.Errorf("event %s was completed twice", id)
	default:
	}
}

// TestFailureReportsTheCauseOfTheOutage, from the moment on when the database takes over until the
// notifier is back.
func TestFailureReportsTheCauseOfTheOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &switchable{Notifier: memnotify.New(memnotify.Config{})}
		receiver, err := fallback.New(b, never{}, fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var pulling sync.WaitGroup
		pulling.Go(func() { _, _ = receiver.Pull(ctx, 1) }) // until the test ends
		defer pulling.Wait()
		defer stop()
		if err := receiver.Failure(); err != nil {
			t.Errorf("Failure = %v of a notifier that is well", err)
		}
		b.set(true)
		<-time.After(time.Minute) // of virtual time
		if err := receiver.Failure(); !errors.Is(err, errDown) {
			t.Errorf("Failure = %v of a notifier that is down", err)
		}
		b.set(false)
		<-time.After(time.Minute)
		if err := receiver.Failure(); err != nil {
			t.Errorf("Failure = %v of a notifier that is well again", err)
		}
	})
}

// forgetful is a store that finds nothing any more once the test has set that.
type forgetful struct {
	*pgstore.Store
	blind atomic.Bool
}

func (f *forgetful) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	if f.blind.Load() {
		return nil, nil
	}
	return f.Store.TakeDue(ctx, within, limit, await)
}

func (f *forgetful) Awaiting(await maintenance.AwaitTake) maintenance.Searches {
	return forgetfulSearches{f.Store.Awaiting(await), f}
}

type forgetfulSearches struct {
	maintenance.Searches
	of *forgetful
}

func (s forgetfulSearches) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	if s.of.blind.Load() {
		return nil, 0, nil
	}
	return s.Searches.TakeLost(ctx, after, limit, lostAfter)
}

func (s forgetfulSearches) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	if s.of.blind.Load() {
		return nil, maintenance.RoundPlace{}, nil
	}
	return s.Searches.TakeRound(ctx, after, lostAfter)
}

// TestAdvancedEventsAreNotPublishedDuringAnOutage (I19): while publishing works and
// pulling does not, the next event of an ordering key starts when the one before it has
// ended, and not when its notification is taken for lost.
func TestAdvancedEventsAreNotPublishedDuringAnOutage(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	store := &forgetful{Store: r.Store}
	b := &switchable{Notifier: r.Notifier}
	b.down.Store(true)
	b.Inject(memnotify.Faults{Pull: b.state, Ack: b.state, Requeue: b.state})
	r.QueueOn(store, b)
	var err error
	if r.Receiver, err = fallback.New(b, store, fallback.Config{After: time.Millisecond, Poll: 10 * time.Millisecond,
		Sweep: 10 * time.Millisecond, LostAfter: time.Millisecond, Logger: testenv.Logger(t)}); err != nil {
		t.Fatal(err)
	}
	const events = 20
	begun, goOn, done := make(chan struct{}, events), make(chan struct{}), make(chan struct{}, events)
	r.Handle(func(context.Context, *eventqueue.Run) error {
		begun <- struct{}{}
		<-goOn
		return nil
	}, eventqueue.Policy{})
	r.Start(worker.Config{Concurrency: 2, Observe: func(out worker.Outcome) {
		if out.Label == machine.ExecutesToCompletion {
			done <- struct{}{}
		}
	}})
	r.Emit(slices.Repeat([]eventqueue.NewEvent{r.InOrder("k", `1`)}, events)...)
	soon := testenv.Context(t)
	await := func(what string, c <-chan struct{}, n int) {
		t.Helper()
		for i := range n {
			select {
			case <-c:
			case <-soon.Done():
				t.Fatalf("%d of %d events %s", i, n, what)
			}
		}
	}
	await("began", begun, 1)
	store.blind.Store(true)
	close(goOn)
	await("ended", done, events)
}
