package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// faultyStore fails as told, and is the real store otherwise.
type faultyStore struct {
	worker.Store
	claim, finish, take atomic.Pointer[func() error]
}

func (f *faultyStore) TakeRate(ctx context.Context, asks []worker.RateAsk) ([]ratelimit.Answer, error) {
	if fault := f.take.Load(); fault != nil {
		if err := (*fault)(); err != nil {
			return nil, err
		}
	}
	return f.Store.TakeRate(ctx, asks)
}

func (f *faultyStore) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	if fault := f.claim.Load(); fault != nil {
		if err := (*fault)(); err != nil {
			return nil, err
		}
	}
	return f.Store.Claim(ctx, ids, known, claim)
}

func (f *faultyStore) Complete(ctx context.Context, in eventqueue.DB, completions []worker.Completion, retain bool) (worker.WriteResult, error) {
	if fault := f.finish.Load(); fault != nil {
		if err := (*fault)(); err != nil {
			return worker.WriteResult{}, err
		}
	}
	return f.Store.Complete(ctx, in, completions, retain)
}

func TestDatabaseFailuresAreRetried(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	store := &faultyStore{Store: r.Store}
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
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	r.StartOn(store, worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if n := r.Outcomes.Count(machine.Claimed); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

// TestUnwrittenEndReturnsTheNotification keeps the database down
// until the worker has stopped (Delete → Exception → Queue, and the same for
// RetryCheck).
func TestUnwrittenEndReturnsTheNotification(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("handler fails=%t", fails), func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			store := &faultyStore{Store: r.Store}
			tried := make(chan struct{}, 100)
			store.finish.Store(new(func() error {
				select {
				case tried <- struct{}{}:
				default:
				}
				return errors.New("connection reset")
			}))
			r.Handle(func(context.Context, *eventqueue.Run) error {
				if fails {
					return errors.New("no luck")
				}
				return nil
			}, rig.Quick())
			r.Emit(r.Event(`1`))
			published := r.Notifier.Len() // more than one where the answer took long
			stop := r.StartOn(store, worker.Config{})
			<-tried
			stop()
			r.Outcomes.Await(t, machine.Exception, 1)
			if n, m := r.Waiting(), r.Notifier.Len(); n != 1 || m < 1 || m > published {
				t.Errorf("%d rows and %d notifications, want 1 and 1, or up to the %d that were published", n, m, published)
			}
		})
	}
}

// TestRefusedRowFailsNoOther has event_log refuse one row of a batch.
func TestRefusedRowFailsNoOther(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Exec(`ALTER TABLE event_log ADD CONSTRAINT hostile CHECK (value <> '"refused"')`)
	r.Handle(func(context.Context, *eventqueue.Run) error { return eventqueue.Permanent(errors.New("no")) }, rig.Quick())
	events := make([]eventqueue.NewEvent, 50)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	events[20] = r.Event(`"refused"`)
	r.Emit(events...)
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.FailedForGood, 49)
	r.Outcomes.Await(t, machine.Exception, 1)
	if n, m := r.Logged("FAILED"), r.Waiting(); n != 49 || m != 1 {
		t.Errorf("%d in event_log and %d waiting, want 49 and 1", n, m)
	}
}

// TestUnclaimableRowFailsNoOther has Postgres refuse to claim one row.
func TestUnclaimableRowFailsNoOther(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	events := make([]eventqueue.NewEvent, 50)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	ids := r.Emit(events...)
	r.Exec(`UPDATE events_v2 SET attempts = 1000000000 WHERE id = $1`, ids[20])
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 49)
	r.Outcomes.Await(t, machine.LockClaimFailed, 1)
	if n := r.Waiting(); n != 1 {
		t.Errorf("%d events wait, want 1", n)
	}
	r.Exec(`UPDATE events_v2 SET attempts = 0`)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 50)
}

func TestAnyErrorTextIsStored(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(context.Context, *eventqueue.Run) error {
		return eventqueue.Permanent(errors.New("bad \x00 \xff bytes " + strings.Repeat("é", 10_000)))
	}, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.FailedForGood, 1)
	if n := rig.One[int](r, `SELECT octet_length(last_error) FROM event_log`); n > worker.MaxLastErrorBytes {
		t.Errorf("last_error holds %d bytes", n)
	}
}

// TestForgedNotificationsChangeNothing doubles, forges and loses notifications.
func TestForgedNotificationsChangeNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	var runs atomic.Int32
	r.Handle(func(context.Context, *eventqueue.Run) error { runs.Add(1); return nil }, rig.Quick())
	events := make([]eventqueue.NewEvent, 200)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	r.Notifier.Duplicate(100)
	ids := r.Emit(events...)
	forged := make([]eventqueue.Notification, 100)
	for i := range forged {
		forged[i] = eventqueue.Notification{Event: ids[i] + 1_000_000*eventqueue.EventID(i%2)}
	}
	if err := r.Notifier.Publish(ctx, forged); err != nil {
		t.Fatal(err)
	}
	r.Start(worker.Config{})
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, len(events))
	if n := runs.Load(); int(n) != len(events) {
		t.Errorf("%d runs of %d events", n, len(events))
	}
}

func TestHandlerPanicIsRecorded(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	policy := rig.Quick()
	policy.MaxRetries = new(int)
	r.Handle(func(context.Context, *eventqueue.Run) error {
		var nothing *eventqueue.Run
		_ = nothing.Value // panics with a runtime error
		return nil
	}, policy)
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.RetryTooMany, 1)
	if got := rig.One[string](r, `SELECT last_error FROM event_log`); !strings.Contains(got, "nil pointer") {
		t.Errorf("event_log says %q", got)
	}
}

func TestFailingReceiverIsRetried(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	var pulls atomic.Int32
	r.Notifier.Inject(memnotify.Faults{Pull: func() error {
		if pulls.Add(1) <= 4 {
			return errors.New("unavailable")
		}
		return nil
	}})
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
}
