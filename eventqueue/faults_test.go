package eventqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/test/testenv"
)

// faultyStore fails as told, and is the real store otherwise.
type faultyStore struct {
	eventqueue.ClaimStore
	claim, finish, take atomic.Pointer[func() error]
}

func (f *faultyStore) TakeRate(ctx context.Context, asks []eventqueue.RateAsk) ([]eventqueue.RateAnswer, error) {
	if fault := f.take.Load(); fault != nil {
		if err := (*fault)(); err != nil {
			return nil, err
		}
	}
	return f.ClaimStore.TakeRate(ctx, asks)
}

func (f *faultyStore) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.Known, lockTimeout time.Duration) ([]eventqueue.Found, error) {
	if fault := f.claim.Load(); fault != nil {
		if err := (*fault)(); err != nil {
			return nil, err
		}
	}
	return f.ClaimStore.Claim(ctx, ids, known, lockTimeout)
}

func (f *faultyStore) Finish(ctx context.Context, in eventqueue.DB, ends []eventqueue.End, keep bool) (eventqueue.Written, error) {
	if fault := f.finish.Load(); fault != nil {
		if err := (*fault)(); err != nil {
			return eventqueue.Written{}, err
		}
	}
	return f.ClaimStore.Finish(ctx, in, ends, keep)
}

// startOn runs a worker on a store of the test's.
func (r *rig) startOn(store eventqueue.ClaimStore, config eventqueue.WorkerConfig) (stop func()) {
	r.t.Helper()
	config.Observe = r.outcomes.add
	config.Logger = testenv.Logger(r.t)
	worker, err := eventqueue.NewWorker(r.queue, store, r.notifier, r.handlers, config)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := worker.Run(ctx); err != nil {
			r.t.Errorf("worker: %v", err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	r.t.Cleanup(stop)
	return stop
}

func TestDatabaseFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	store := &faultyStore{ClaimStore: r.store}
	var claims, finishes atomic.Int32
	failTwice := func(n *atomic.Int32) *func() error {
		return new(func() error {
			if n.Add(1) <= 2 {
				return errors.New("connection reset")
			}
			return nil
		})
	}
	store.claim.Store(failTwice(&claims))
	store.finish.Store(failTwice(&finishes))
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	r.startOn(store, eventqueue.WorkerConfig{})
	r.emit(r.event(`1`))
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
	if n := r.outcomes.count(machine.Claimed); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

// TestAnEndThatCannotBeWrittenGivesTheNotificationBack keeps the database down
// until the worker has stopped (Delete → Exception → Queue, and the same for
// RetryCheck).
func TestAnEndThatCannotBeWrittenGivesTheNotificationBack(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("handler fails=%t", fails), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			store := &faultyStore{ClaimStore: r.store}
			tried := make(chan struct{}, 100)
			store.finish.Store(new(func() error {
				select {
				case tried <- struct{}{}:
				default:
				}
				return errors.New("connection reset")
			}))
			r.handle(func(context.Context, *eventqueue.Run) error {
				if fails {
					return errors.New("no luck")
				}
				return nil
			}, quick())
			stop := r.startOn(store, eventqueue.WorkerConfig{})
			r.emit(r.event(`1`))
			<-tried
			stop()
			r.outcomes.await(t, machine.Exception, 1)
			if n, m := r.waiting(), r.notifier.Len(); n != 1 || m != 1 {
				t.Errorf("%d rows and %d notifications, want 1 and 1", n, m)
			}
		})
	}
}

// TestOneRefusedRowSpoilsNoOther has event_log refuse one row of a batch.
func TestOneRefusedRowSpoilsNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`ALTER TABLE event_log ADD CONSTRAINT hostile CHECK (value <> '"refused"')`)
	r.handle(func(context.Context, *eventqueue.Run) error { return eventqueue.Permanent(errors.New("no")) }, quick())
	events := make([]eventqueue.NewEvent, 50)
	for i := range events {
		events[i] = r.event(`1`)
	}
	events[20] = r.event(`"refused"`)
	r.emit(events...)
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.FailedForGood, 49)
	r.outcomes.await(t, machine.Exception, 1)
	if n, m := r.logged("FAILED"), r.waiting(); n != 49 || m != 1 {
		t.Errorf("%d in event_log and %d waiting, want 49 and 1", n, m)
	}
}

func TestAnyErrorTextIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(func(context.Context, *eventqueue.Run) error {
		return eventqueue.Permanent(errors.New("bad \x00 \xff bytes " + strings.Repeat("é", 10_000)))
	}, quick())
	r.start(eventqueue.WorkerConfig{})
	r.emit(r.event(`1`))
	r.outcomes.await(t, machine.FailedForGood, 1)
	if n := one[int](r, `SELECT octet_length(last_error) FROM event_log`); n > eventqueue.MaxLastErrorBytes {
		t.Errorf("last_error holds %d bytes", n)
	}
}

// TestNotificationsDecideNothing doubles, forges and loses notifications.
func TestNotificationsDecideNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	var runs atomic.Int32
	r.handle(func(context.Context, *eventqueue.Run) error { runs.Add(1); return nil }, quick())
	events := make([]eventqueue.NewEvent, 200)
	for i := range events {
		events[i] = r.event(`1`)
	}
	r.notifier.Duplicate(100)
	ids := r.emit(events...)
	forged := make([]eventqueue.Notification, 100)
	for i := range forged {
		forged[i] = eventqueue.Notification{Event: ids[i] + 1_000_000*eventqueue.EventID(i%2)}
	}
	if err := r.notifier.Publish(ctx, forged); err != nil {
		t.Fatal(err)
	}
	r.start(eventqueue.WorkerConfig{})
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, len(events))
	if n := runs.Load(); int(n) != len(events) {
		t.Errorf("%d runs of %d events", n, len(events))
	}
}

func TestAHandlerMayEndItsGoroutine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	policy := quick()
	policy.MaxRetries = new(int)
	r.handle(func(context.Context, *eventqueue.Run) error {
		var nothing *eventqueue.Run
		_ = nothing.Value // panics with a runtime error
		return nil
	}, policy)
	r.start(eventqueue.WorkerConfig{})
	r.emit(r.event(`1`))
	r.outcomes.await(t, machine.RetryTooMany, 1)
	if got := one[string](r, `SELECT last_error FROM event_log`); !strings.Contains(got, "nil pointer") {
		t.Errorf("event_log says %q", got)
	}
}

func TestAFailingReceiverIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var pulls atomic.Int32
	r.notifier.Inject(memnotify.Faults{Pull: func() error {
		if pulls.Add(1) <= 4 {
			return errors.New("unavailable")
		}
		return nil
	}})
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	r.start(eventqueue.WorkerConfig{})
	r.emit(r.event(`1`))
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
}
