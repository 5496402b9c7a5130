package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// cancelled has an operator cancel an event that runs.
func cancelled(r *rig.Rig, id eventqueue.EventID) {
	r.T.Helper()
	got, err := r.Changer().Cancel(testenv.Context(r.T), operate.Cancellation{Reason: "twice", Actor: "ada"}, id)
	if err != nil || len(got) != 1 || got[0].Result != operate.ChangeEnding {
		r.T.Fatalf("cancel: %+v, %v", got, err)
	}
}

// ended is what the history has of an event.
const ended = `SELECT coalesce((SELECT concat_ws(' ', status, reason, actor, retries) FROM event_log), 'nothing')`

// onlyStore is a store without a connection for heartbeats, so that its worker hears no notification of Postgres.
type onlyStore struct{ worker.Store }

// TestCancelledRunIsToldWithinFiveSeconds, and what its handler returns then decides. A worker that hears no notification is told with its
// heartbeat.
func TestCancelledRunIsToldWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		returns func(ctx context.Context) error
		label   machine.Label
		want    string
		deaf    bool
	}{
		"an error":               {func(ctx context.Context) error { return ctx.Err() }, machine.Cancelled, "CANCELLED twice ada 0", false},
		"that it is of no use":   {func(context.Context) error { return eventqueue.Permanent(errors.New("no")) }, machine.Cancelled, "CANCELLED twice ada 0", false},
		"that it has to wait":    {func(context.Context) error { return eventqueue.Snooze(time.Minute) }, machine.Cancelled, "CANCELLED twice ada 0", false},
		"a panic":                {func(context.Context) error { panic("told") }, machine.Cancelled, "CANCELLED twice ada 0", false},
		"nothing":                {func(context.Context) error { return nil }, machine.ExecutesToCompletion, "COMPLETED 0", false},
		"an error, by heartbeat": {func(ctx context.Context) error { return ctx.Err() }, machine.Cancelled, "CANCELLED twice ada 0", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				cause := make(chan error, 10)
				r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
					<-ctx.Done()
					cause <- context.Cause(ctx)
					return c.returns(ctx)
				}, eventqueue.Policy{Timeout: time.Hour})
				var store worker.Store = r.Store
				within := 5 * time.Second
				if c.deaf {
					store, within = onlyStore{r.Store}, 30*time.Second
				}
				stop := r.StartOn(store, worker.Config{RetainHistory: true})
				defer stop()
				id := r.Emit(r.Event(`1`))[0]
				r.Outcomes.Await(t, machine.Claimed, 1)
				cancelled(r, id)
				rig.Pass(within)
				if len(cause) != 1 || !errors.Is(<-cause, eventqueue.ErrCancelled) {
					t.Error("the run was not told that it was cancelled")
				}
				r.Outcomes.Await(t, c.label, 1)
				if got := rig.One[string](r, ended); got != c.want {
					t.Errorf("the history has %s, want %s", got, c.want)
				}
			})
		})
	}
}

// lateAnswer is a store whose answer to a claim comes late, after something has happened.
type lateAnswer struct {
	*pgstore.Store
	happens func()
}

func (s lateAnswer) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	found, err := s.Store.Claim(ctx, ids, known, claim)
	if len(found) > 0 {
		s.happens()
		time.Sleep(answersLate)
	}
	return found, err
}

const answersLate = 500 * time.Millisecond

// TestEventIsCancelledBeforeItsWorkerKnowsThatItRuns: the answer of the claim is under way when the worker hears of the cancellation.
func TestEventIsCancelledBeforeItsWorkerKnowsThatItRuns(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
			<-ctx.Done()
			return ctx.Err()
		}, eventqueue.Policy{Timeout: time.Hour})
		id := r.Emit(r.Event(`1`))[0]
		defer r.StartOn(lateAnswer{r.Store, func() { cancelled(r, id) }}, worker.Config{})()
		rig.Pass(5 * time.Second)
		if got := rig.One[string](r, ended); got != "CANCELLED twice ada 0" {
			t.Errorf("the history has %s", got)
		}
	})
}

// TestCancelledEventOfAHangingHandlerIsNotRunAgain: its lock expires, and whoever claims it next ends it. What the handler returns after
// that changes nothing (I5).
func TestCancelledEventOfAHangingHandlerIsNotRunAgain(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		let, runs := make(chan struct{}), make(chan struct{}, 10)
		r.Handle(func(context.Context, *eventqueue.Run) error {
			runs <- struct{}{}
			<-let
			return nil
		}, eventqueue.Policy{Timeout: time.Hour})
		w, stop := r.StartWorker(r.Store, worker.Config{Concurrency: 2, RetainHistory: true})
		defer stop()
		id := r.Emit(r.Event(`1`))[0]
		r.Outcomes.Await(t, machine.Claimed, 1)
		cancelled(r, id)
		rig.Pass(15 * time.Second)
		if s := w.Slots(); s.Busy != 0 || s.Hung != 1 {
			t.Errorf("the slots are %+v", s)
		}
		rig.Pass(3 * time.Minute)
		if got := rig.One[string](r, ended); got != "CANCELLED twice ada 0" || len(runs) != 1 {
			t.Errorf("after %d runs the history has %s", len(runs), got)
		}
		close(let)
		r.Outcomes.Await(t, machine.LockLost, 1)
		if got := rig.One[string](r, ended); got != "CANCELLED twice ada 0" {
			t.Errorf("when the handler had returned the history has %s", got)
		}
	})
}

// TestEventThatFailsBeforeItsWorkerHearsIsCancelled: it waits for no further claim, which a rule may keep from coming. The worker hears of
// nothing, as it has no connection for that and its heartbeat is later.
func TestEventThatFailsBeforeItsWorkerHearsIsCancelled(t *testing.T) {
	t.Parallel()
	for name, returns := range map[string]func() error{
		"an error": func() error { return errors.New("no luck") },
		"a snooze": func() error { return eventqueue.Snooze(time.Hour) },
		"a panic":  func() error { panic("no luck") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				let := make(chan struct{})
				r.Handle(func(context.Context, *eventqueue.Run) error { <-let; return returns() }, eventqueue.Policy{Timeout: time.Hour})
				defer r.StartOn(onlyStore{r.Store}, worker.Config{})()
				ids := r.Emit(r.InOrder("account", `1`), r.InOrder("account", `2`))
				r.Outcomes.Await(t, machine.Claimed, 1)
				cancelled(r, ids[0])
				if _, err := r.Rules().Add(testenv.Context(t), operate.PauseRule, rig.Scope); err != nil {
					t.Fatal(err)
				}
				close(let)
				r.Outcomes.Await(t, machine.Cancelled, 1)
				if got := rig.One[string](r, ended); got != "CANCELLED twice ada 0" {
					t.Errorf("the history has %s", got)
				}
				if n := rig.One[int](r, `SELECT count(*) FROM event_attempts`); n != 0 {
					t.Errorf("%d failed attempts are recorded of a run that was cancelled", n)
				}
				if may := rig.One[bool](r, `SELECT group_state = 2 FROM events_v2 WHERE id = $1`, ids[1]); !may {
					t.Error("the next event of its ordering key has not got its turn")
				}
			})
		})
	}
}

// TestEventOfAWorkerThatStopsIsCancelled: what it was asked to end while the worker stopped is not left to another worker.
func TestEventOfAWorkerThatStopsIsCancelled(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		r.Handle(func(ctx context.Context, _ *eventqueue.Run) error { <-ctx.Done(); return ctx.Err() }, eventqueue.Policy{Timeout: time.Hour})
		stop := r.StartOn(onlyStore{r.Store}, worker.Config{GracePeriod: time.Second})
		id := r.Emit(r.Event(`1`))[0]
		r.Outcomes.Await(t, machine.Claimed, 1)
		cancelled(r, id)
		stop()
		if got := rig.One[string](r, ended); got != "CANCELLED twice ada 0" {
			t.Errorf("the history has %s", got)
		}
	})
}
