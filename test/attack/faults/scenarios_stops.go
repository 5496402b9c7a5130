package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"eventsv2/internal/backoff"
	"eventsv2/test/attack/harness"
	"eventsv2/test/oracle"
)

// stopLimit is the 10 s after which Cloud Run kills, with no more on top than it takes to
// see the end: what is to be done after the grace period of 8 s has half a second to
// spare. It was 10.3 s.
const stopLimit = 10*time.Second + 200*time.Millisecond

func stopWithinGrace(ctx context.Context, r *rig) {
	r.cron(ctx, nil)
	worker := r.worker(ctx, "worker-1", nil)
	open := r.gate("work")
	r.emit(ctx, batch{label: "held", n: 700})
	if !r.eventually(ctx, startLimit, func() bool { return r.begun("held") >= 400 }) {
		r.fatalf("%d events have begun, want 400", r.begun("held"))
	}
	began := time.Now()
	r.fault(oracle.Stopped, worker.Name, began, began.Add(time.Minute))
	stopped := worker.Terminate(30 * time.Second)
	took := time.Since(began)
	r.figure("stop_took=%.2fs", took.Seconds())
	if took > stopLimit {
		r.latef("the worker ended %s after SIGTERM, at most %s are allowed", took.Round(time.Millisecond), stopLimit)
	}
	if stopped && worker.Status != 0 {
		r.failf("the worker ended with status %d: %s", worker.Status, worker.LastWords())
	}
	open()
	r.worker(ctx, "worker-2", nil)
	r.awaitDone(ctx, "held", 40*time.Second)
}

// stopWhileBothHang stops programs that can neither write what they have done nor give back what they
// hold. Completions are lost, so those events run again when their locks have expired.
func stopWhileBothHang(ctx context.Context, r *rig) {
	settings := impatient("5s")
	both := []*program{r.worker(ctx, "worker-1", settings), r.cron(ctx, settings)}
	r.target.behave("work", takes(200*time.Millisecond))
	r.emit(ctx, batch{label: "held", n: 2000})
	if !r.eventually(ctx, startLimit, func() bool { return r.begun("held") >= 300 }) {
		r.fatalf("%d events have begun, want 300", r.begun("held"))
	}
	from := time.Now()
	cures := make([]func(context.Context) error, 0, 3)
	for _, way := range []*harness.Proxy{both[0].database, both[1].database, r.wire} {
		cure, err := way.Infect(harness.Mute(harness.Answers))
		r.must(err)
		cures = append(cures, cure)
	}
	backoff.Sleep(ctx, 2*time.Second)
	var stops sync.WaitGroup
	for _, p := range both {
		stops.Go(func() {
			began := time.Now()
			p.Terminate(40 * time.Second)
			took := time.Since(began)
			r.figure("%s_stop_took=%.2fs", p.Name, took.Seconds())
			if took > stopLimit {
				r.failf("%s ended %s after SIGTERM, at most %s are allowed", p.Name, took.Round(time.Millisecond), stopLimit)
			}
		})
	}
	stops.Wait()
	if !strings.Contains(both[0].LogText(), "could not") {
		r.failf("the worker did not say what it has left: %s", both[0].LastWords())
	}
	for _, cure := range cures {
		r.must(cure(ctx))
	}
	r.fault(oracle.LostDatabase, "", from.Add(-time.Second), time.Now().Add(6*time.Second))
	r.cron(ctx, settings)
	r.worker(ctx, "worker-2", settings)
	r.awaitDone(ctx, "held", 60*time.Second)
}
