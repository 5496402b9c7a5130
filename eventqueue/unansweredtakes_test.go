package eventqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/rig"
)

// pending emits events whose notifications are pending, as those of EmitTx.
func (r *cutRig) pending(n int) (ids []eventqueue.EventID) {
	r.Helper()
	inserted, err := r.store.Insert(r.Context(), nil, groupEvents(n), eventqueue.NotifyModeLater)
	if err != nil {
		r.Fatal(err)
	}
	for _, row := range inserted {
		ids = append(ids, row.ID)
	}
	return ids
}

// stillPending counts the events whose notification is pending, after a wait.
func (r *cutRig) stillPending(wait time.Duration) int {
	time.Sleep(wait)
	synctest.Wait()
	return rig.Scalar[int](r.T, r.pool, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`)
}

func (r *cutRig) marked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.marks
}

// notify has the notifications taken, as Pending.Notify does, and returns its result.
func (r *cutRig) notify(ids []eventqueue.EventID) <-chan error {
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
		defer cancel()
		result <- r.queue.NotifyPending(ctx, ids)
	}()
	return result
}

// unanswered is notify, and requires that the answer is lost.
func (r *cutRig) unanswered(ids []eventqueue.EventID) {
	r.Helper()
	if err := <-r.notify(ids); err == nil {
		r.Error("no error was returned")
	}
}

// TestTakenNotificationsWithoutAnAnswerArePendingAgain (I19), for the relay, which is woken.
func TestTakenNotificationsWithoutAnAnswerArePendingAgain(t *testing.T) {
	t.Parallel()
	for how, lose := range map[string]func(context.Context) error{"cut": cut, "silent": silent} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			withCutQueue(t, func(r *cutRig) {
				ids := r.pending(3)
				r.loses(lose, rig.OpTakePending)
				result := r.notify(ids[:2])
				if n := r.stillPending(promisedStart); n != 3 {
					r.Errorf("%d notifications are pending %s after they were taken, want all 3", n, promisedStart)
				}
				r.loses(nil)
				if err := <-result; err == nil {
					r.Error("no error was returned")
				}
				if r.stillPending(time.Hour); r.marked() > 2 { // once more when the silent one has failed
					r.Errorf("they were marked as pending %d times", r.marked())
				}
			})
		})
	}
}

// TestTakenNotificationsAreMarkedUntilThatIsAnswered, and no longer than for a minute.
func TestTakenNotificationsAreMarkedUntilThatIsAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lasts time.Duration
		again bool
	}{"for half a minute": {30 * time.Second, true}, "for two minutes": {2 * time.Minute, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withCutQueue(t, func(r *cutRig) {
				ids := r.pending(1)
				r.loses(cut, rig.OpTakePending, rig.OpMarkPending)
				r.unanswered(ids)
				r.stillPending(c.lasts)
				tries := r.marked()
				if tries < 5 || tries > 30 {
					r.Errorf("%d tries in %s", tries, c.lasts)
				}
				r.loses(nil)
				if r.stillPending(10 * time.Second); (r.marked() > tries) != c.again {
					r.Errorf("%d tries after the database has come back", r.marked()-tries)
				}
				tries = r.marked()
				if r.stillPending(time.Hour); r.marked() != tries {
					r.Errorf("%d further tries", r.marked()-tries)
				}
			})
		})
	}
}

// TestLateAnswerMarksNothing: a database that is only slow has no notification published twice.
func TestLateAnswerMarksNothing(t *testing.T) {
	t.Parallel()
	withCutQueue(t, func(r *cutRig) {
		r.loses(func(context.Context) error { time.Sleep(1600 * time.Millisecond); return nil }, rig.OpTakePending)
		if err := <-r.notify(r.pending(2)); err != nil {
			r.Error(err)
		}
		if n := r.published(time.Hour); n != 2 || r.marked() != 0 {
			r.Errorf("%d notifications were published, want 2; they were marked %d times", n, r.marked())
		}
	})
}

// TestNothingIsMarkedWithoutALostAnswer (I12).
func TestNothingIsMarkedWithoutALostAnswer(t *testing.T) {
	t.Parallel()
	withCutQueue(t, func(r *cutRig) {
		if err := <-r.notify(r.pending(1)); err != nil {
			r.Error(err)
		}
		if n := r.published(time.Hour); n != 1 || r.marked() != 0 {
			r.Errorf("%d notifications were published, want 1; they were marked %d times", n, r.marked())
		}
	})
}

// TestCloseMarksALastTime: a program that ends does not leave its notifications to their age.
func TestCloseMarksALastTime(t *testing.T) {
	t.Parallel()
	withCutQueue(t, func(r *cutRig) {
		ids := r.pending(1)
		r.loses(cut, rig.OpTakePending)
		r.unanswered(ids)
		r.loses(nil)
		if err := r.queue.Close(r.Context()); err != nil {
			r.Error(err)
		}
		if n := r.stillPending(0); n != 1 {
			r.Errorf("%d notifications are pending after Close, want 1", n)
		}
		if r.stillPending(time.Hour); r.marked() != 1 {
			r.Errorf("they were marked %d times", r.marked())
		}
	})
}
