package sim

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
)

// drawVersion draws a version; a full one knows every handler.
func (w *world) drawVersion(full bool) version {
	v := version{
		concurrency:  40,
		claimBatch:   1 + w.dice.IntN(mostBatch),
		heartbeat:    w.dice.between(2*time.Second, lockTimeout/2),
		grace:        w.dice.between(-1, 8*time.Second),
		unknownDelay: w.dice.between(2*time.Second, 10*time.Second),
		maxRetries:   w.leastRetries + w.dice.IntN(w.mostRetries-w.leastRetries+1),
		maxSnoozes:   w.dice.IntN(mostSnoozes + 1),
		unknown:      map[string]bool{},
	}
	if w.dice.chance(0.3) {
		v.concurrency = 2 + w.dice.IntN(30) // so small that it is full now and then
	}
	if !full && w.dice.chance(0.3) {
		v.unknown[append(jobs[:], typedModule)[w.dice.IntN(len(jobs)+1)]] = true
	}
	return v
}

// startWorker starts a worker in one of the fleet's places.
func (w *world) startWorker(slot int, full bool) {
	w.incarnation++
	p := w.newProcess(fmt.Sprintf("w%d.%d", slot+1, w.incarnation))
	p.works, p.version = true, w.drawVersion(full)
	if w.attacking {
		w.faults["worker started as a version of its own"]++
	}
	if len(p.version.unknown) > 0 {
		w.faults["worker started without a handler"]++
	}
	w.workers[slot] = p
	p.restart = func() { w.startWorker(slot, !w.attacking) }
	handlers := eventqueue.NewHandlers()
	for i, key := range w.keys() {
		if p.version.unknown[key.Name] {
			continue
		}
		retries, snoozes := p.version.maxRetries, p.version.maxSnoozes
		policy := eventqueue.Policy{
			Timeout:    time.Duration(8+11*i) * time.Second, // some outlast a lock
			MaxRetries: &retries, MaxSnoozes: &snoozes,
			Backoff: p.backoff(8 * time.Second),
		}
		handle := func(ctx context.Context, run *eventqueue.Run) error { return p.handle(ctx, run, policy.Timeout) }
		if err := handlers.Register(key, eventqueue.HandlerFunc(handle), policy); err != nil {
			panic(err)
		}
	}
	if w.chains && !p.version.unknown[typedModule] {
		retries, snoozes := p.version.maxRetries, p.version.maxSnoozes
		p.bus(handlers, eventqueue.Policy{Timeout: 12 * time.Second, MaxRetries: &retries, MaxSnoozes: &snoozes,
			Backoff: p.backoff(8 * time.Second)})
	}
	if w.grids {
		retries, snoozes := p.version.maxRetries, p.version.maxSnoozes
		p.registerGrid(handlers, eventqueue.Policy{Timeout: 15 * time.Second, MaxRetries: &retries, MaxSnoozes: &snoozes,
			Backoff: p.backoff(8 * time.Second)})
	}
	if w.publishes {
		retries, snoozes := p.version.maxRetries, p.version.maxSnoozes
		p.registerReports(handlers, eventqueue.Policy{Timeout: 12 * time.Second, MaxRetries: &retries, MaxSnoozes: &snoozes,
			Backoff: p.backoff(8 * time.Second)})
	}
	store, receiver := p.sides()
	workers, err := worker.New(p.queue, store, receiver, handlers, worker.Config{
		Concurrency: p.version.concurrency, ClaimBatch: p.version.claimBatch, LockTimeout: lockTimeout,
		Heartbeat: p.version.heartbeat, Lease: leaseExtension, GracePeriod: p.version.grace, UnknownDelay: p.version.unknownDelay,
		RetainHistory: true, Jitter: p.jitter, Observe: p.observe,
	})
	if err != nil {
		panic(err)
	}
	w.note("start %s: slots %d, batch %d, heartbeat %s, grace %s, retries %d, without %v", p.name, p.version.concurrency, p.version.claimBatch,
		p.version.heartbeat, p.version.grace, p.version.maxRetries, p.version.unknown)
	p.run(func(ctx context.Context) { _ = workers.Run(ctx) }) // it fails only when it is called twice
}

// observe stops the worker at each outcome until nothing else in it moves. What
// the worker does from outcome to outcome is then the same each time, whatever the
// order in which Go runs its goroutines. For the same reason answers go through
// the gate one by one, and the notifier hands out alone what may be an abandoned event,
// whose end comes without a run.
func (p *process) observe(out worker.Outcome) {
	c := call{op: "outcome", key: fmt.Sprintf("%s#%d %s", out.Event, out.Attempt, labelOf(out.Label))}
	_ = p.do(context.Background(), c, func() (string, error) { // it fails only when the process is dead
		p.w.outcomes[labelOf(out.Label)]++
		return fmt.Sprintf("%s after %s", out.To, out.Delay), nil
	})
}

func labelOf(l machine.Label) string {
	if l == machine.Deleted {
		return "deleted"
	}
	return string(l)
}
