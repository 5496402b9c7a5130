package worker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestApproximateOvershootIsSubtracted measures by how much several workers overshoot a window, and
// checks that this is subtracted from the next one.
func TestApproximateOvershootIsSubtracted(t *testing.T) {
	t.Parallel()
	const workers, batch, perMinute = 4, 10, 60
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: perMinute, Mode: ratelimit.Approximate})
	for range workers {
		r.Start(worker.Config{ClaimBatch: batch})
	}
	before, looks := 0, 600
	r.emitTo(rig.Key.Name, looks)
	for minute := 1; minute <= 4; minute++ {
		r.awaitOutcomes(looks)
		ran := r.Outcomes.Count(machine.ExecutesToCompletion)
		over := ran - minute*perMinute
		t.Logf("minute %d: %d ran, the limit is %d; %+d in all", minute, ran-before, perMinute, over)
		if over > workers*batch {
			t.Errorf("after %d minutes %d have run: that is %d too many, and %d workers may overshoot by %d each", minute, ran, over, workers, batch)
		}
		testenv.Eventually(t, "all is counted", func() bool {
			return rig.One[int64](r.Rig, `SELECT day_count FROM rate_counters`) == int64(ran)
		})
		if rig.One[int](r.Rig, `SELECT count(*) FROM events_v2 WHERE attempts > 0 AND retries > 0`) > 0 {
			t.Error("a retry was used")
		}
		before = ran
		looks += r.nextMinute()
	}
}

// TestApproximateLimitDoesNotWait for the database while it is known to have room, and
// bounds what is not counted yet.
func TestApproximateLimitDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{PerMinute: 1000, Mode: ratelimit.Approximate})
	store := &faultyStore{Store: r.Store}
	stop := r.StartOn(store, worker.Config{ClaimBatch: 10})
	r.emitTo(rig.Key.Name, 1)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1) // which has asked
	blocked, letGo := make(chan struct{}, 100), make(chan struct{})
	let := sync.OnceFunc(func() { close(letGo) })
	t.Cleanup(let) // before the worker is waited for
	store.take.Store(new(func() error { blocked <- struct{}{}; <-letGo; return nil }))
	r.emitTo(rig.Key.Name, 10)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 11)
	<-blocked // the report of them, which waits
	r.emitTo(rig.Key.Name, 5)
	testenv.Eventually(t, "it asks, or lets run", func() bool {
		return len(blocked) > 0 || r.Outcomes.Count(machine.ExecutesToCompletion) > 11
	})
	if n := r.Outcomes.Count(machine.ExecutesToCompletion); n != 11 { // who has let ten run without telling may let no more
		t.Fatalf("%d have run, want 11", n)
	}
	let()
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 16)
	r.emitTo(rig.Key.Name, 3)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 19)
	stop()
	if n := rig.One[int](r.Rig, `SELECT minute_count FROM rate_counters`); n != 19 {
		t.Errorf("%d of 19 runs are counted after the worker has stopped", n)
	}
}

// TestLimitMayBecomeExact, or gets an exact one of the canvas beside it, is so from the
// next claim on, whatever a worker knew before.
func TestLimitMayBecomeExact(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]eventqueue.Scope{"the same limit": handlerScope(), "that of the canvas": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newClockRig(t)
			r.Handle(done, rig.Quick())
			r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 1000, Mode: ratelimit.Approximate})
			r.Start(worker.Config{})
			r.emitTo(rig.Key.Name, 1)
			r.Outcomes.Await(t, machine.ExecutesToCompletion, 1) // which has asked
			r.limit(operate.RateLimit{Scope: scope, PerDay: 3})
			left := 3 - rig.One[int](r.Rig, `SELECT day_count::int FROM rate_counters ORDER BY module LIMIT 1`)
			r.emitTo(rig.Key.Name, 20)
			r.awaitOutcomes(21)
			if n := r.Outcomes.Count(machine.ExecutesToCompletion); n != 1+left {
				t.Errorf("%d have run, and the exact limit has let %d run", n, 1+left)
			}
		})
	}
}

func TestCountsAreReportedAtTheStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if !worker.ReportsAtTheStop(ctx, 3) || worker.ReportsAtTheStop(ctx, 0) {
		t.Error("what has begun is to be told, and nothing else")
	}
	if cancel(); worker.ReportsAtTheStop(ctx, 3) {
		t.Error("the last statements have their time and no more")
	}
}

// TestClaimSendsOneStatement: a report that has just ended does not take what a claim
// has let run and is about to ask about with the rest of its events.
func TestClaimSendsOneStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !worker.ReportsUnasked(ctx, 3, true) {
			t.Error("what has begun is to be told when a claim asks for nothing else")
		}
		if worker.ReportsUnasked(ctx, 3, false) {
			t.Error("what a claim is about to ask about is told twice")
		}
	})
}
