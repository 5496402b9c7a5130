package fallback_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/test/rig"
)

// stuck are pages whose statements are not answered for as long as somebody waits, or for an hour.
type stuck struct{ *rig.Pages }

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
		return []eventqueue.Delivery{{Notification: eventqueue.Notification{Event: 1, Canvas: rig.Canvas}, AckID: "1"}}, nil
	}
	return f.silentNotifier.Pull(ctx, max)
}

func (f *fickle) Requeue(context.Context, []eventqueue.Delivery, time.Duration) error { return nil }

// TestHangingDatabaseDoesNotHideTheNotifier (I13, I19): a notifier that is back is used, though
// no statement is answered any more.
func TestHangingDatabaseDoesNotHideTheNotifier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		notifier := &fickle{newSilent(true)}
		receiver, err := fallback.New(notifier, stuck{rig.NewPages(0, 0)}, fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
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
		rig.Pass(20 * time.Second)
		notifier.set(false)
		pulling.Wait()
		select {
		case <-delivered:
		default:
			t.Error("the notifier was not pulled from any more")
		}
	})
}

// TestSearchForLostNotificationsEnds (I12): a relay that finds something lost has it searched for
// by workers whose notifier delivers nothing, for a while, also when it is found again and
// again, as an event that nobody has a handler for is; and by no others.
func TestSearchForLostNotificationsEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := newStand(t, rig.NewPages(0, 1), eventqueue.MaxPublish, 0)
		st.mu.Lock()
		st.acks = true
		st.mu.Unlock()
		st.wake(true)
		rig.Pass(20 * time.Second)
		if asked, _ := st.since(); asked != 0 {
			t.Errorf("the database was asked %d times by a worker that has just begun", asked)
		}
		st.wake(true)
		rig.Pass(20 * time.Second)
		if asked, delivered := st.since(); asked == 0 || delivered == 0 {
			t.Errorf("in %d searches %d lost events were found", asked, delivered)
		}
		st.rests(t, 2*time.Minute, "the database was asked %d times long after")
	})
}

// TestSearchEndsWhenTheNotifierDelivers (I12), and none begins beside a notifier that does.
func TestSearchEndsWhenTheNotifierDelivers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		notifier, p := &fickle{newSilent(false)}, rig.NewPages(0, 0)
		var report func(lost bool)
		receiver, err := fallback.New(notifier, p, fallback.Config{Listen: func(ctx context.Context, wake func(lost bool)) error {
			report = wake
			<-ctx.Done()
			return ctx.Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = receiver.Attend(ctx) }) // the notifier is fit
		defer running.Wait()
		defer stop()
		rig.Pass(time.Minute)
		report(true) // nothing has been delivered: nobody has pulled
		for range 100 {
			if _, err := receiver.Pull(ctx, 1); err != nil {
				t.Fatal(err)
			}
			rig.Pass(time.Second)
			report(true)
		}
		p.Mu.Lock()
		defer p.Mu.Unlock()
		if p.Asked > 2 {
			t.Errorf("beside a notifier that delivers the database was queried %d times", p.Asked)
		}
	})
}

// partly are pages of which one search never answers.
type partly struct {
	*rig.Pages
	*rig.Stall
}

func (p partly) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	if err := p.In(ctx, "round"); err != nil {
		return nil, after, err
	}
	return p.Pages.TakeRound(ctx, after, lostAfter)
}

func (p partly) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	if err := p.In(ctx, "lost"); err != nil {
		return nil, after, err
	}
	return p.Pages.TakeLost(ctx, after, limit, lostAfter)
}

// TestWorkerBoundsEveryStatement (I13, I19): one that finds events in the database
// does so though one kind of search gets no answer.
func TestWorkerBoundsEveryStatement(t *testing.T) {
	t.Parallel()
	for _, search := range []string{"round", "lost"} {
		t.Run(search, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := partly{rig.NewPages(3, 0), rig.NewStall(search)}
				receiver, err := fallback.New(newSilent(true), store, fallback.Config{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				var delivered int
				var running sync.WaitGroup
				running.Go(func() {
					for ctx.Err() == nil {
						deliveries, _ := receiver.Pull(ctx, eventqueue.MaxPublish) // what fails is asked again
						delivered += len(deliveries)
						_ = receiver.Ack(ctx, deliveries) // they are the receiver's own
						<-time.After(100 * time.Millisecond)
					}
				})
				store.AskedAgain(t)
				stop()
				running.Wait()
				if delivered != 3*eventqueue.MaxPublish {
					t.Errorf("%d of %d due events were delivered", delivered, 3*eventqueue.MaxPublish)
				}
			})
		})
	}
}
