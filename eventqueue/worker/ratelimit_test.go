package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestExactLimitHoldsAcrossWorkers, that of a handler and that of its canvas: never more
// than either in a window, and never less while enough wait.
func TestExactLimitHoldsAcrossWorkers(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	other := rig.Key
	other.Name = "other"
	if err := r.Handlers.Register(other, eventqueue.HandlerFunc(done), rig.Quick()); err != nil {
		t.Fatal(err)
	}
	r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: 20})
	r.limit(operate.RateLimit{PerMinute: 30, PerDay: 70})
	for range 3 {
		r.Start(worker.Config{ClaimBatch: 7})
	}
	r.emitTo(rig.Key.Name, 100)
	r.emitTo(other.Name, 100)
	looks := 200
	r.awaitOutcomes(looks)
	ran := func(minute int, want int) {
		t.Helper()
		per := map[string]int{}
		for _, out := range r.Outcomes.List() {
			if out.Label == machine.ExecutesToCompletion {
				per[out.Handler.Name]++
			}
			if out.Label == machine.OverLimit && out.Delay < time.Second {
				t.Errorf("an event is put off for %s only", out.Delay)
			}
		}
		if per[rig.Key.Name]+per[other.Name] != want || per[rig.Key.Name] > minute*20 {
			t.Errorf("after %d minutes %v have run, want %d in all", minute, per, want)
		}
	}
	ran(1, 30)
	looks += r.nextMinute()
	r.awaitOutcomes(looks)
	ran(2, 60)
	looks += r.nextMinute()
	r.awaitOutcomes(looks)
	ran(3, 70) // and the day is full
	if n := rig.One[int](r.Rig, `SELECT count(*) FROM events_v2 WHERE retries > 0 OR delay_until <= clock_timestamp()`); n != 0 {
		t.Errorf("%d of those that wait have used a retry, or are due", n)
	}
	// The last room of the day may have been kept for older events when an event asked: that one asks once more.
	early := 1
	for minute := 4; minute < 7 && early > 0; minute++ {
		looks += r.nextMinute()
		r.awaitOutcomes(looks)
		ran(minute, 70)
		early = rig.One[int](r.Rig, `SELECT count(*) FROM events_v2 WHERE delay_until < date_bin('1 day', clock_timestamp(), 'epoch') + interval '1 day'
			AND limited_attempt > 0 AND attempts > 2`)
	}
	if early != 0 {
		t.Errorf("%d events come before the day is over", early)
	}
}

// TestBacklogIsClaimedOncePerWindow: each of the events of twenty windows comes in its
// own, spread over it, and is claimed when it is emitted and when its window has begun.
func TestBacklogIsClaimedOncePerWindow(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: 10})
	r.Start(worker.Config{})
	r.emitTo(rig.Key.Name, 200)
	looks := 200
	r.awaitOutcomes(looks)
	if instants := rig.One[int](r.Rig, `SELECT count(DISTINCT delay_until) FROM events_v2`); instants < 150 {
		t.Errorf("190 events come at %d times", instants)
	}
	for minute := 1; minute < 20; minute++ {
		if outside := rig.One[int](r.Rig, `SELECT count(*) FROM events_v2 WHERE delay_until < $1 OR delay_until > $2`,
			r.now.Truncate(time.Minute).Add(time.Minute), r.now.Truncate(time.Minute).Add(time.Duration(20-minute)*time.Minute+31*time.Second)); outside != 0 {
			t.Errorf("minute %d: %d events come too early or too late", minute, outside)
		}
		looks += r.nextMinute()
		r.awaitOutcomes(looks)
		if want := 10 * (minute + 1); r.Outcomes.Count(machine.ExecutesToCompletion) != want {
			t.Errorf("after %d minutes %d have run, want %d", minute+1, r.Outcomes.Count(machine.ExecutesToCompletion), want)
		}
	}
	if r.Waiting() != 0 {
		t.Errorf("%d events are left", r.Waiting())
	}
	perEvent := float64(r.Outcomes.Count(machine.Claimed)) / 200
	t.Logf("%.2f looks per event of a backlog of 20 windows", perEvent)
	if perEvent > 2 {
		t.Errorf("%.2f looks per event, want at most 2", perEvent)
	}
}

func TestUnavailableLimitsDelayEvents(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{PerDay: 5})
	store := &faultyStore{Store: r.Store}
	store.take.Store(new(func() error { return errors.New("no luck") }))
	r.StartOn(store, worker.Config{})
	free := r.Event(`1`)
	free.Canvas = eventqueue.CanvasID{9}
	r.Emit(r.Event(`1`), free)
	r.Outcomes.Await(t, machine.OverLimit, 1)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1) // that of another canvas
	for _, out := range r.Outcomes.List() {
		if out.Label == machine.OverLimit && (out.Delay < 5*time.Second || out.Delay > 10*time.Second || !strings.Contains(out.Err.Error(), "no luck")) {
			t.Errorf("put off for %s because of %v", out.Delay, out.Err)
		}
	}
	store.take.Store(nil)
	r.nextMinute()
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	if n := r.Logged("FAILED"); n != 0 {
		t.Errorf("%d events have failed", n)
	}
}

// TestStoppingWorkerReturnsEventsAwaitingALimit, at once and unharmed.
func TestStoppingWorkerReturnsEventsAwaitingALimit(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{PerDay: 5})
	store := &hangingTake{Store: r.Store, asked: make(chan struct{})}
	stop := r.StartOn(store, worker.Config{GracePeriod: -1})
	r.emitTo(rig.Key.Name, 1)
	<-store.asked
	stop()
	if n := r.Outcomes.Count(machine.Released); n != 1 {
		t.Errorf("%v", r.Outcomes.Summary())
	}
	if free := rig.One[bool](r.Rig, `SELECT locked_at IS NULL AND retries = 0 AND delay_until <= clock_timestamp() FROM events_v2`); !free {
		t.Error("the event is not as it was")
	}
}

// hangingTake does not answer before its context ends.
type hangingTake struct {
	worker.Store
	asked chan struct{}
}

func (h *hangingTake) TakeRate(ctx context.Context, _ []worker.RateAsk) ([]ratelimit.Answer, error) {
	close(h.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestLimitRemovedDuringACheckBlocksNothing: an event that it has refused does not
// wait for a window of a limit that no longer exists.
func TestLimitRemovedDuringACheckBlocksNothing(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 1})
	r.Exec(`UPDATE rate_counters SET day_at = date_bin('1 day', clock_timestamp(), 'epoch'), day_count = 1`)
	store := &changedMeanwhile{Store: r.Store, change: func() {
		if removed, _, err := r.limits.Remove(testenv.Context(t), handlerScope()); !removed || err != nil {
			t.Errorf("remove: %t, %v", removed, err)
		}
	}}
	r.StartOn(store, worker.Config{})
	r.emitTo(rig.Key.Name, 1)
	r.Outcomes.Await(t, machine.OverLimit, 1)
	if pending := rig.One[bool](r.Rig, `SELECT delay_until <= clock_timestamp() AND notified_at IS NULL AND retries = 0 FROM events_v2`); !pending {
		t.Fatal("the event waits though nothing limits it, or nothing will notify for it")
	}
	r.notifyDue()
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
}

// changedMeanwhile changes something between a take and its answer.
type changedMeanwhile struct {
	worker.Store
	change func()
}

func (c *changedMeanwhile) TakeRate(ctx context.Context, asks []worker.RateAsk) ([]ratelimit.Answer, error) {
	answers, err := c.Store.TakeRate(ctx, asks)
	c.change()
	return answers, err
}

// TestEventThatLostItsLastRunFails ends, whatever the limit says: it does not run (I9).
func TestEventThatLostItsLastRunFails(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	var ran atomic.Int32
	r.Handle(func(context.Context, *eventqueue.Run) error { ran.Add(1); return nil }, rig.Quick())
	r.limit(operate.RateLimit{PerDay: 1})
	r.Exec(`UPDATE rate_counters SET day_at = date_bin('1 day', clock_timestamp(), 'epoch'), day_count = 1`)
	r.emitTo(rig.Key.Name, 1)
	r.Exec(`UPDATE events_v2 SET retries = 2, attempts = 3, begun = true, suspect = 1, locked_at = clock_timestamp() - interval '2 minutes'`)
	r.Start(worker.Config{})
	testenv.Eventually(t, "it has ended, or was put off", func() bool {
		return r.Outcomes.Count(machine.RetryTooMany)+r.Outcomes.Count(machine.OverLimit) > 0
	})
	if ran.Load() != 0 || r.Logged("FAILED") != 1 {
		t.Errorf("it ran %d times: %v", ran.Load(), r.Outcomes.Summary())
	}
}

// TestRaisedOrRemovedLimitReleasesWaitingEvents, in pages, and nothing else.
func TestRaisedOrRemovedLimitReleasesWaitingEvents(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		if string(run.Value) == `"snooze"` {
			return eventqueue.Snooze(time.Hour)
		}
		return nil
	}, rig.Quick())
	snoozed, delayed := r.Event(`"snooze"`), r.Event(`1`)
	delayed.Delay = time.Hour
	r.Start(worker.Config{})
	r.Emit(snoozed, delayed)
	r.Outcomes.Await(t, machine.Snoozed, 1)
	if n := r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 5}); n != 0 {
		t.Errorf("a new limit has released %d", n)
	}
	r.emitTo(rig.Key.Name, 2505)
	r.awaitOutcomes(2505)
	for _, same := range []int{5, 3} {
		if n := r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: same}); n != 0 {
			t.Errorf("a limit that allows no more has released %d", n)
		}
	}
	if n := r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 105}); n != 2500 {
		t.Errorf("the raised limit has released %d of 2500", n)
	}
	r.awaitOutcomes(2505 + 2500)
	if n := r.Outcomes.Count(machine.ExecutesToCompletion); n != 105 {
		t.Errorf("%d have run, want 105", n)
	}
	ctx := testenv.Context(t)
	if removed, n, err := r.limits.Remove(ctx, eventqueue.Scope{Canvas: rig.Canvas}); removed || n != 2505-105 || err != nil {
		t.Errorf("removing what is not there: %t, %d, %v", removed, n, err)
	}
	r.awaitOutcomes(2505 + 2500 + 2505 - 105)
	if removed, n, err := r.limits.Remove(ctx, handlerScope()); !removed || n != 2505-105 || err != nil {
		t.Errorf("remove: %t, %d, %v", removed, n, err)
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2505)
	if n := rig.One[int](r.Rig, `SELECT count(*) FROM events_v2 WHERE delay_until = clock_timestamp() + interval '1 hour'`); r.Waiting() != 2 || n == 0 {
		t.Errorf("%d events wait, want the snoozed and the delayed one", r.Waiting())
	}
}
