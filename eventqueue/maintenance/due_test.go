package maintenance_test

import (
	"context"
	"encoding/json"
	"errors"
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

// promisedStart is within what time an event starts after any single failure.
const promisedStart = 2 * time.Second

// dueRig is a store that loses the answers of its takes of due events, and a notifier.
type dueRig struct {
	*testing.T
	pool  *pgxpool.Pool
	store *rig.FaultyStore

	mu        sync.Mutex
	lose      func(ctx context.Context) error // nil: no answer is lost
	losses    int                             // that are left
	published []time.Time
}

// withDueRig runs a test in virtual time.
func withDueRig(t *testing.T, test func(r *dueRig)) {
	t.Helper()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		r := &dueRig{T: t, pool: pool}
		r.store = rig.Faulty(pgstore.New(pool), rig.Faults{After: r.after})
		test(r)
	})
}

func (r *dueRig) after(ctx context.Context, op rig.Op) error {
	r.mu.Lock()
	if op != rig.OpTakeDue || r.losses == 0 {
		r.mu.Unlock()
		return nil
	}
	r.losses--
	r.mu.Unlock()
	return r.lose(ctx)
}

// loses has so many answers be lost.
func (r *dueRig) loses(losses int, how func(ctx context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose, r.losses = how, losses
}

func (r *dueRig) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.published = append(r.published, slices.Repeat([]time.Time{time.Now()}, len(notifications))...)
	return nil
}

// relay runs a relay that finds nothing by its age.
func (r *dueRig) relay() (stop func()) {
	r.Helper()
	return running(r.T, r.store, r, maintenance.RelayConfig{LostAfter: 24 * time.Hour})
}

// pending emits events whose notifications are pending.
func (r *dueRig) pending(n int) {
	r.Helper()
	events := slices.Repeat([]eventqueue.NewEvent{{Canvas: beside, Module: "M", Name: "n", Modifier: "_", Value: json.RawMessage("1")}}, n)
	if _, err := r.store.Insert(r.Context(), nil, events, eventqueue.NotifyModeLater); err != nil {
		r.Fatal(err)
	}
}

// stillPending counts the events whose notifications are pending.
func (r *dueRig) stillPending() int {
	return rig.Scalar[int](r.T, r.pool, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`)
}

// publishedWithin waits, and requires that so many notifications are published.
func (r *dueRig) publishedWithin(wait time.Duration, want int) {
	r.Helper()
	<-time.After(wait)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.published) != want {
		r.Errorf("%d notifications are published within %s, want %d", len(r.published), wait, want)
	}
}

// The ways to lose an answer: at once, and with a connection that stays silent.
var lossesOfAnswers = map[string]func(ctx context.Context) error{
	"cut": func(context.Context) error { return errors.New("the connection was cut") },
	"silent": func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	},
}

// TestDueEventsWhoseTakeGotNoAnswerArePendingAgain (I19): they are published within what is promised
// after any single failure, each once.
func TestDueEventsWhoseTakeGotNoAnswerArePendingAgain(t *testing.T) {
	t.Parallel()
	for how, lose := range lossesOfAnswers {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			withDueRig(t, func(r *dueRig) {
				stop := r.relay()
				<-time.After(time.Minute)
				r.loses(1, lose)
				r.pending(3)
				r.publishedWithin(promisedStart, 3)
				r.publishedWithin(30*time.Second, 3)
				stop()
			})
		})
	}
}

// TestAnsweredDueTakeIsNotMarked (I12).
func TestAnsweredDueTakeIsNotMarked(t *testing.T) {
	t.Parallel()
	withDueRig(t, func(r *dueRig) {
		stop := r.relay()
		r.pending(2000)
		r.publishedWithin(30*time.Second, 2000)
		stop()
	})
}

// TestRelayWaitsForASlowDatabase (I13), and takes little twice: a statement that needs ten
// seconds is not cut off each time.
func TestRelayWaitsForASlowDatabase(t *testing.T) {
	t.Parallel()
	withDueRig(t, func(r *dueRig) {
		stop := r.relay()
		r.loses(100, func(ctx context.Context) error {
			select {
			case <-time.After(10 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		r.pending(3)
		r.publishedWithin(2*time.Minute, 3)
		stop()
	})
}

// TestWaitForAnswersShrinksAgain when the database is fast: after a loss an event is as early as
// after the first one.
func TestWaitForAnswersShrinksAgain(t *testing.T) {
	t.Parallel()
	withDueRig(t, func(r *dueRig) {
		stop := r.relay()
		for n := range 5 {
			<-time.After(time.Minute)
			r.loses(1, lossesOfAnswers["silent"])
			r.pending(1)
			r.publishedWithin(promisedStart, n+1)
		}
		stop()
	})
}

// TestStoppingRelayMarksUnansweredTakes, within the time of a stop, and so does one pass.
func TestStoppingRelayMarksUnansweredTakes(t *testing.T) {
	t.Parallel()
	t.Run("Run", func(t *testing.T) {
		t.Parallel()
		withDueRig(t, func(r *dueRig) {
			stop := r.relay()
			<-time.After(time.Minute)
			r.loses(1, lossesOfAnswers["silent"])
			r.pending(3)
			<-time.After(time.Second)
			synctest.Wait()
			if n := r.stillPending(); n != 0 {
				r.Errorf("%d notifications are pending while the answer is awaited", n)
			}
			stop()
			if n := r.stillPending(); n != 3 {
				r.Errorf("%d notifications are pending after the stop, want 3", n)
			}
		})
	})
	t.Run("Pass", func(t *testing.T) {
		t.Parallel()
		withDueRig(t, func(r *dueRig) {
			relay, err := maintenance.NewRelay(r.store, r, maintenance.RelayConfig{})
			if err != nil {
				t.Fatal(err)
			}
			r.loses(1, lossesOfAnswers["cut"])
			r.pending(3)
			if _, err := relay.Pass(r.Context()); err == nil {
				t.Error("no error was returned")
			}
			if n := r.stillPending(); n != 3 {
				r.Errorf("%d notifications are pending after the pass, want 3", n)
			}
		})
	})
}
