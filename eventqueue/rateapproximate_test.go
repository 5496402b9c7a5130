package eventqueue_test

import (
	"context"
	"sync"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// TestApproximateOvershoot measures by how much several workers overshoot a window, and
// that the next one pays for it.
func TestApproximateOvershoot(t *testing.T) {
	t.Parallel()
	const workers, batch, perMinute = 4, 10, 60
	r := newClockRig(t)
	r.handle(done, quick())
	r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerMinute: perMinute, Mode: eventqueue.RateApproximate})
	for range workers {
		r.start(eventqueue.WorkerConfig{ClaimBatch: batch})
	}
	before, looks := 0, 600
	r.emitTo(key.Name, looks)
	for minute := 1; minute <= 4; minute++ {
		r.awaitEnds(looks)
		ran := r.outcomes.count(machine.ExecutesToCompletion)
		over := ran - minute*perMinute
		t.Logf("minute %d: %d ran, the limit is %d; %+d in all", minute, ran-before, perMinute, over)
		if over > workers*batch {
			t.Errorf("after %d minutes %d have run: that is %d too many, and %d workers may overshoot by %d each", minute, ran, over, workers, batch)
		}
		testenv.Eventually(t, "all is counted", func() bool {
			return one[int64](r.rig, `SELECT day_count FROM rate_counters`) == int64(ran)
		})
		if one[int](r.rig, `SELECT count(*) FROM events_v2 WHERE attempts > 0 AND retries > 0`) > 0 {
			t.Error("a retry was used")
		}
		before = ran
		looks += r.nextMinute()
	}
}

// TestAnApproximateLimitDoesNotWait for the database while it is known to have room, and
// bounds what is not counted yet.
func TestAnApproximateLimitDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.handle(done, quick())
	r.limit(eventqueue.RateLimit{PerMinute: 1000, Mode: eventqueue.RateApproximate})
	store := &faultyStore{ClaimStore: r.store}
	stop := r.startOn(store, eventqueue.WorkerConfig{ClaimBatch: 10})
	r.emitTo(key.Name, 1)
	r.outcomes.await(t, machine.ExecutesToCompletion, 1) // which has asked
	blocked, letGo := make(chan struct{}, 100), make(chan struct{})
	let := sync.OnceFunc(func() { close(letGo) })
	t.Cleanup(let) // before the worker is waited for
	store.take.Store(new(func() error { blocked <- struct{}{}; <-letGo; return nil }))
	r.emitTo(key.Name, 10)
	r.outcomes.await(t, machine.ExecutesToCompletion, 11)
	<-blocked // the report of them, which waits
	r.emitTo(key.Name, 5)
	testenv.Eventually(t, "it asks, or lets run", func() bool {
		return len(blocked) > 0 || r.outcomes.count(machine.ExecutesToCompletion) > 11
	})
	if n := r.outcomes.count(machine.ExecutesToCompletion); n != 11 { // who has let ten run without telling may let no more
		t.Fatalf("%d have run, want 11", n)
	}
	let()
	r.outcomes.await(t, machine.ExecutesToCompletion, 16)
	r.emitTo(key.Name, 3)
	r.outcomes.await(t, machine.ExecutesToCompletion, 19)
	stop()
	if n := one[int](r.rig, `SELECT minute_count FROM rate_counters`); n != 19 {
		t.Errorf("%d of 19 runs are counted after the worker has stopped", n)
	}
}

// TestALimitThatBecomesExact, or gets an exact one of the canvas beside it, is so from the
// next claim on, whatever a worker knew before.
func TestALimitThatBecomesExact(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]eventqueue.Scope{"the same limit": handlerScope(), "that of the canvas": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newClockRig(t)
			r.handle(done, quick())
			r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerDay: 1000, Mode: eventqueue.RateApproximate})
			r.start(eventqueue.WorkerConfig{})
			r.emitTo(key.Name, 1)
			r.outcomes.await(t, machine.ExecutesToCompletion, 1) // which has asked
			r.limit(eventqueue.RateLimit{Scope: scope, PerDay: 3})
			left := 3 - one[int](r.rig, `SELECT day_count::int FROM rate_counters ORDER BY module LIMIT 1`)
			r.emitTo(key.Name, 20)
			r.awaitEnds(21)
			if n := r.outcomes.count(machine.ExecutesToCompletion); n != 1+left {
				t.Errorf("%d have run, and the exact limit has let %d run", n, 1+left)
			}
		})
	}
}

func TestCountsAreToldAtTheStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if !eventqueue.TellsAtTheStop(ctx, 3) || eventqueue.TellsAtTheStop(ctx, 0) {
		t.Error("what has begun is to be told, and nothing else")
	}
	if cancel(); eventqueue.TellsAtTheStop(ctx, 3) {
		t.Error("the last statements have their time and no more")
	}
}
