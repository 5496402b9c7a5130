package worker_test

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
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// sets is a handler's call of SetResult.
func sets(run *eventqueue.Run, result any) {
	if err := run.SetResult(result); err != nil {
		panic(err)
	}
}

// TestResultIsKeptByTheRunThatCompletesItsEvent, and nowhere else.
func TestResultIsKeptByTheRunThatCompletesItsEvent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10-2)
	for name, c := range map[string]struct {
		handle func(ctx context.Context, run *eventqueue.Run) error
		label  machine.Label
		forget bool
		want   string
	}{
		"the handler returns": {func(_ context.Context, run *eventqueue.Run) error {
			sets(run, map[string]int{"rows": 7})
			return nil
		}, machine.ExecutesToCompletion, false, `COMPLETED {"rows":7}`},
		"the last one": {func(_ context.Context, run *eventqueue.Run) error {
			sets(run, 1)
			sets(run, 2)
			return nil
		}, machine.ExecutesToCompletion, false, `COMPLETED 2`},
		"a transaction of its own": {func(ctx context.Context, run *eventqueue.Run) error {
			return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error {
				sets(run, "within")
				return nil
			})
		}, machine.ExecutesToCompletion, false, `COMPLETED "within"`},
		"a long one": {func(_ context.Context, run *eventqueue.Run) error {
			sets(run, long)
			return nil
		}, machine.ExecutesToCompletion, false, `COMPLETED "` + long + `"`},
		"none": {func(context.Context, *eventqueue.Run) error { return nil }, machine.ExecutesToCompletion, false, `COMPLETED`},
		"that of a failed attempt": {func(_ context.Context, run *eventqueue.Run) error {
			if run.Attempt > 1 {
				return nil
			}
			sets(run, "half")
			return errors.New("not yet")
		}, machine.ExecutesToCompletion, false, `COMPLETED`},
		"that of an event that fails": {func(_ context.Context, run *eventqueue.Run) error {
			sets(run, "half")
			return eventqueue.Permanent(errors.New("never"))
		}, machine.FailedForGood, false, `FAILED`},
		"without history": {func(_ context.Context, run *eventqueue.Run) error {
			sets(run, 1)
			return nil
		}, machine.ExecutesToCompletion, true, `nothing`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			r.Handle(c.handle, rig.Quick())
			r.Start(worker.Config{RetainHistory: !c.forget})
			r.Emit(r.Event(`1`))
			r.Outcomes.Await(t, c.label, 1)
			if got := rig.One[string](r, `SELECT coalesce((SELECT concat_ws(' ', status, result) FROM event_log), 'nothing')`); got != c.want {
				t.Errorf("the history has %.100s, want %.100s", got, c.want)
			}
		})
	}
}

// progressWrites is a store that counts, and refuses some writes of progress.
type progressWrites struct {
	*pgstore.Store
	asked   atomic.Int64
	refuses atomic.Bool
}

func (s *progressWrites) WriteProgress(ctx context.Context, claims []worker.Claim, progress []worker.Progress) (worker.WriteResult, error) {
	s.asked.Add(1)
	if s.refuses.Load() {
		return worker.WriteResult{}, errors.New("not now")
	}
	return s.Store.WriteProgress(ctx, claims, progress)
}

// TestProgressIsWrittenEveryTwoSecondsAtMost, the latest of each run, and nothing while no handler says anything.
func TestProgressIsWrittenEveryTwoSecondsAtMost(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		finish := make(chan struct{})
		r.Handle(func(_ context.Context, run *eventqueue.Run) error {
			for i := range 100 {
				if err := run.Progress(float64(i)/100, fmt.Sprintf("%s is at %d", run.Value, i)); err != nil {
					return err
				}
				<-time.After(100 * time.Millisecond)
			}
			<-finish
			return nil
		}, eventqueue.Policy{Timeout: time.Hour})
		store := &progressWrites{Store: r.Store}
		defer r.StartOn(store, worker.Config{RetainHistory: true})()
		rig.Pass(time.Minute)
		if n := store.asked.Load(); n != 0 {
			t.Errorf("an idle worker has written %d times", n)
		}
		said := func() string {
			return rig.One[string](r, `SELECT coalesce(string_agg((progress).note, ', ' ORDER BY id), 'nothing') FROM events_v2`)
		}
		r.Emit(r.Event(`1`), r.Event(`2`))
		store.refuses.Store(true)
		rig.Pass(5 * time.Second)
		if got := said(); got != "nothing" {
			t.Errorf("a refused write has left %s", got)
		}
		store.refuses.Store(false)
		rig.Pass(time.Minute)
		if got := said(); got != "1 is at 99, 2 is at 99" {
			t.Errorf("the last that is written is %s", got)
		}
		if n := store.asked.Load(); n < 4 || n > 7 { // in ten seconds
			t.Errorf("%d writes", n)
		}
		close(finish)
		r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	})
}
