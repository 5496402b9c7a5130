package eventqueue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// TestExactLimitsAmongWorkers, that of a handler and that of its canvas: never more
// than either in a window, and never less while enough wait.
func TestExactLimitsAmongWorkers(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.handle(done, quick())
	other := key
	other.Name = "other"
	if err := r.handlers.Register(other, eventqueue.HandlerFunc(done), quick()); err != nil {
		t.Fatal(err)
	}
	r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerMinute: 20})
	r.limit(eventqueue.RateLimit{PerMinute: 30, PerDay: 70})
	for range 3 {
		r.start(eventqueue.WorkerConfig{ClaimBatch: 7})
	}
	r.emitTo(key.Name, 100)
	r.emitTo(other.Name, 100)
	looks := 200
	r.awaitEnds(looks)
	ran := func(minute int, want int) {
		t.Helper()
		per := map[string]int{}
		for _, out := range r.outcomes.list() {
			if out.Label == machine.ExecutesToCompletion {
				per[out.Handler.Name]++
			}
			if out.Label == machine.OverLimit && out.Delay < time.Second {
				t.Errorf("an event is put off for %s only", out.Delay)
			}
		}
		if per[key.Name]+per[other.Name] != want || per[key.Name] > minute*20 {
			t.Errorf("after %d minutes %v have run, want %d in all", minute, per, want)
		}
	}
	ran(1, 30)
	looks += r.nextMinute()
	r.awaitEnds(looks)
	ran(2, 60)
	looks += r.nextMinute()
	r.awaitEnds(looks)
	ran(3, 70) // and the day is full
	if n := one[int](r.rig, `SELECT count(*) FROM events_v2 WHERE retries > 0 OR delay_until <= clock_timestamp()`); n != 0 {
		t.Errorf("%d of those that wait have used a retry, or are due", n)
	}
	if early := one[int](r.rig, `SELECT count(*) FROM events_v2 WHERE delay_until < date_bin('1 day', clock_timestamp(), 'epoch') + interval '1 day'
		AND limited_attempt > 0 AND attempts > 2`); early != 0 {
		t.Errorf("%d events come before the day is over", early)
	}
}

// TestABacklogIsLookedAtOncePerTurn: each of the events of twenty windows comes in its
// own, spread over it, and is looked at when it is emitted and when its turn has come.
func TestABacklogIsLookedAtOncePerTurn(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.handle(done, quick())
	r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerMinute: 10})
	r.start(eventqueue.WorkerConfig{})
	r.emitTo(key.Name, 200)
	looks := 200
	r.awaitEnds(looks)
	if instants := one[int](r.rig, `SELECT count(DISTINCT delay_until) FROM events_v2`); instants < 150 {
		t.Errorf("190 events come at %d times", instants)
	}
	for minute := 1; minute < 20; minute++ {
		if outside := one[int](r.rig, `SELECT count(*) FROM events_v2 WHERE delay_until < $1 OR delay_until > $2`,
			r.now.Truncate(time.Minute).Add(time.Minute), r.now.Truncate(time.Minute).Add(time.Duration(20-minute)*time.Minute+31*time.Second)); outside != 0 {
			t.Errorf("minute %d: %d events come too early or too late", minute, outside)
		}
		rung := r.nextMinute()
		looks += rung
		r.awaitEnds(looks)
		if want := 10 * (minute + 1); r.outcomes.count(machine.ExecutesToCompletion) != want {
			t.Errorf("after %d minutes %d have run, want %d", minute+1, r.outcomes.count(machine.ExecutesToCompletion), want)
		}
	}
	if r.waiting() != 0 {
		t.Errorf("%d events are left", r.waiting())
	}
	perEvent := float64(r.outcomes.count(machine.Claimed)) / 200
	t.Logf("%.2f looks per event of a backlog of 20 windows", perEvent)
	if perEvent > 2 {
		t.Errorf("%.2f looks per event, want at most 2", perEvent)
	}
}

func TestLimitsThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.handle(done, quick())
	r.limit(eventqueue.RateLimit{PerDay: 5})
	store := &faultyStore{ClaimStore: r.store}
	store.take.Store(new(func() error { return errors.New("no luck") }))
	r.startOn(store, eventqueue.WorkerConfig{})
	free := r.event(`1`)
	free.Canvas = eventqueue.CanvasID{9}
	r.emit(r.event(`1`), free)
	r.outcomes.await(t, machine.OverLimit, 1)
	r.outcomes.await(t, machine.ExecutesToCompletion, 1) // that of another canvas
	for _, out := range r.outcomes.list() {
		if out.Label == machine.OverLimit && (out.Delay < 5*time.Second || out.Delay > 10*time.Second || !strings.Contains(out.Err.Error(), "no luck")) {
			t.Errorf("put off for %s because of %v", out.Delay, out.Err)
		}
	}
	store.take.Store(nil)
	r.nextMinute()
	r.outcomes.await(t, machine.ExecutesToCompletion, 2)
	if n := r.logged("FAILED"); n != 0 {
		t.Errorf("%d events have failed", n)
	}
}

// TestAWorkerThatStopsGivesBackWhatItAsksAbout, at once and unharmed.
func TestAWorkerThatStopsGivesBackWhatItAsksAbout(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.handle(done, quick())
	r.limit(eventqueue.RateLimit{PerDay: 5})
	store := &hangingTake{ClaimStore: r.store, asked: make(chan struct{})}
	stop := r.startOn(store, eventqueue.WorkerConfig{GracePeriod: -1})
	r.emitTo(key.Name, 1)
	<-store.asked
	stop()
	if n := r.outcomes.count(machine.Released); n != 1 {
		t.Errorf("%v", r.outcomes.summary())
	}
	if free := one[bool](r.rig, `SELECT locked_at IS NULL AND retries = 0 AND delay_until <= clock_timestamp() FROM events_v2`); !free {
		t.Error("the event is not as it was")
	}
}

// hangingTake does not answer before its context ends.
type hangingTake struct {
	eventqueue.ClaimStore
	asked chan struct{}
}

func (h *hangingTake) TakeRate(ctx context.Context, _ []eventqueue.RateAsk) ([]eventqueue.RateAnswer, error) {
	close(h.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestALimitThatIsRemovedWhileItsAnswerIsUnderWay: what it has refused does not wait for
// its turn under a limit that is gone.
func TestALimitThatIsRemovedWhileItsAnswerIsUnderWay(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.handle(done, quick())
	r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerDay: 1})
	r.exec(`UPDATE rate_counters SET day_at = date_bin('1 day', clock_timestamp(), 'epoch'), day_count = 1`)
	store := &changedMeanwhile{ClaimStore: r.store, change: func() {
		if removed, _, err := r.limits.Remove(testenv.Context(t), handlerScope()); !removed || err != nil {
			t.Errorf("remove: %t, %v", removed, err)
		}
	}}
	r.startOn(store, eventqueue.WorkerConfig{})
	r.emitTo(key.Name, 1)
	r.outcomes.await(t, machine.OverLimit, 1)
	if owed := one[bool](r.rig, `SELECT delay_until <= clock_timestamp() AND notified_at IS NULL AND retries = 0 FROM events_v2`); !owed {
		t.Fatal("the event waits though nothing limits it, or nobody will ring for it")
	}
	r.ringDue()
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
}

// changedMeanwhile changes something between a take and its answer.
type changedMeanwhile struct {
	eventqueue.ClaimStore
	change func()
}

func (c *changedMeanwhile) TakeRate(ctx context.Context, asks []eventqueue.RateAsk) ([]eventqueue.RateAnswer, error) {
	answers, err := c.ClaimStore.TakeRate(ctx, asks)
	c.change()
	return answers, err
}

// TestAnEventThatHasLostItsLastRun ends, whatever the limit says: it does not run (I9).
func TestAnEventThatHasLostItsLastRun(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	var ran atomic.Int32
	r.handle(func(context.Context, *eventqueue.Run) error { ran.Add(1); return nil }, quick())
	r.limit(eventqueue.RateLimit{PerDay: 1})
	r.exec(`UPDATE rate_counters SET day_at = date_bin('1 day', clock_timestamp(), 'epoch'), day_count = 1`)
	r.emitTo(key.Name, 1)
	r.exec(`UPDATE events_v2 SET retries = 2, attempts = 3, locked_at = clock_timestamp() - interval '2 minutes'`)
	r.start(eventqueue.WorkerConfig{})
	testenv.Eventually(t, "it has ended, or was put off", func() bool {
		return r.outcomes.count(machine.RetryTooMany)+r.outcomes.count(machine.OverLimit) > 0
	})
	if ran.Load() != 0 || r.logged("FAILED") != 1 {
		t.Errorf("it ran %d times: %v", ran.Load(), r.outcomes.summary())
	}
}

// TestRaisingOrRemovingALimitReleasesWhatWaits, in pages, and nothing else.
func TestRaisingOrRemovingALimitReleasesWhatWaits(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.handle(func(_ context.Context, run *eventqueue.Run) error {
		if string(run.Value) == `"snooze"` {
			return eventqueue.Snooze(time.Hour)
		}
		return nil
	}, quick())
	snoozed, delayed := r.event(`"snooze"`), r.event(`1`)
	delayed.Delay = time.Hour
	r.start(eventqueue.WorkerConfig{})
	r.emit(snoozed, delayed)
	r.outcomes.await(t, machine.Snoozed, 1)
	if n := r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerDay: 5}); n != 0 {
		t.Errorf("a new limit has released %d", n)
	}
	r.emitTo(key.Name, 2505)
	r.awaitEnds(2505)
	for _, same := range []int{5, 3} {
		if n := r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerDay: same}); n != 0 {
			t.Errorf("a limit that allows no more has released %d", n)
		}
	}
	if n := r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerDay: 105}); n != 2500 {
		t.Errorf("the raised limit has released %d of 2500", n)
	}
	r.awaitEnds(2505 + 2500)
	if n := r.outcomes.count(machine.ExecutesToCompletion); n != 5+102 { // the lowered limit said that 3 were used
		t.Errorf("%d have run, want 107", n)
	}
	ctx := testenv.Context(t)
	if removed, n, err := r.limits.Remove(ctx, eventqueue.Scope{Canvas: canvas}); removed || n != 2505-107 || err != nil {
		t.Errorf("removing what is not there: %t, %d, %v", removed, n, err)
	}
	r.awaitEnds(2505 + 2500 + 2505 - 107)
	if removed, n, err := r.limits.Remove(ctx, handlerScope()); !removed || n != 2505-107 || err != nil {
		t.Errorf("remove: %t, %d, %v", removed, n, err)
	}
	r.outcomes.await(t, machine.ExecutesToCompletion, 2505)
	if n := one[int](r.rig, `SELECT count(*) FROM events_v2 WHERE delay_until = clock_timestamp() + interval '1 hour'`); r.waiting() != 2 || n == 0 {
		t.Errorf("%d events wait, want the snoozed and the delayed one", r.waiting())
	}
}
