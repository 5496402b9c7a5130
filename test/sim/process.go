package sim

import (
	"context"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/oracle"
)

// process is one simulated program: a worker, a relay with a cron checker, an
// emitter or the operator. Its store and notifier are behind the gate.
type process struct {
	w       *world
	name    string
	version version
	works   bool           // it is a worker
	db      *pgstore.Store // on its connections
	queue   *eventqueue.Queue
	cancel  context.CancelFunc // what SIGTERM does
	restart func()             // starts another one in its place
	stopped chan struct{}      // closed when it has ended in an orderly way, or died and was swept up
	skew    time.Duration      // how far its clock is ahead: see clock.go
	errands sync.WaitGroup     // of goroutines that nobody waits for

	// claimed has, of events that the process has claimed, how often their rows were written then. It is used by
	// calls that have passed the gate.
	claimed map[eventqueue.EventID]int

	// Guarded by the gate's lock:
	dead, frozen, cut bool
	deaf              bool // to the database's answers
}

// run starts the process; main returns when its context has ended.
func (p *process) run(main func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.w.alive.Go(func() {
		defer close(p.stopped)
		main(ctx)
		p.errands.Wait()
		p.w.add(oracle.Record{Kind: oracle.ProcessEnded, Actor: p.name})
		_ = p.queue.Close(context.Background()) // without a deadline it cannot fail
	})
	if p.w.rest != nil { // all others were stopped already
		cancel()
	}
}

// kill is SIGKILL: nothing that the process does from now on reaches anybody. Its
// goroutines are let go; every call of theirs fails at once. It is called by the
// controller, or by a call that has passed the gate.
func (p *process) kill() {
	w := p.w
	w.mu.Lock()
	p.dead, p.frozen = true, false
	var calls []*call
	for _, list := range []*[]*call{&w.arrivals, &w.waiting} {
		kept := (*list)[:0]
		for _, c := range *list {
			if c.who == p {
				calls = append(calls, c)
			} else {
				kept = append(kept, c)
			}
		}
		*list = kept
	}
	w.mu.Unlock()
	w.tables.disconnect(p.name)
	for _, c := range calls {
		c.answer <- verdict{err: errKilled}
	}
	if p.cancel != nil {
		p.cancel()
	}
}

// fault opens a fault of the process in the history and returns its end.
func (p *process) fault(kind oracle.FaultKind) (end func()) { return p.w.fault(kind, p.name) }

// jitter depends on who asks, when, and for what, and on nothing else.
func (p *process) jitter(most time.Duration) time.Duration {
	return time.Duration(mix(p.w.seed, hash(p.name), uint64(time.Now().UnixNano()), uint64(most)) % uint64(most))
}

// backoff is the same for back-offs.
func (p *process) backoff(most time.Duration) eventqueue.Backoff {
	return func(n int) time.Duration {
		wait := min(time.Second<<(n-1), most)
		return wait*4/5 + p.jitter(wait*2/5+1)
	}
}

// version is what differs between the workers of one fleet.
type version struct {
	concurrency, claimBatch int
	heartbeat, grace        time.Duration
	unknownDelay            time.Duration
	maxRetries, maxSnoozes  int
	unknown                 map[string]bool // names of handlers that it does not have
}
