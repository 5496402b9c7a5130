package eventqueue

import (
	"context"
	"sync"
	"time"
)

// execution is a run in this worker, from claim to end.
type execution struct {
	run      *Run
	delivery Delivery
	policy   Policy
	handler  Handler
	cancel   context.CancelCauseFunc
	began    time.Time

	// Owned by runs.mu:
	renewed  time.Time // when the claim or its last renewal was asked for
	leased   time.Time // when the delivery was pulled or its lease extended
	deadline time.Time // of the handler; after it nothing is renewed
	ended    bool      // its end has been handed to the finisher
}

// runs are the executions that have not ended, for the heartbeat and the stop.
type runs struct {
	mu  sync.Mutex
	all map[*execution]struct{}
}

func newRuns() runs { return runs{all: map[*execution]struct{}{}} }

func (r *runs) add(x *execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[x] = struct{}{}
}

// end removes an execution and hands its end over, unless it was abandoned
// before: then that has been done. hand must not block.
func (r *runs) end(x *execution, hand func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.ended {
		return
	}
	x.ended = true
	delete(r.all, x)
	hand()
}

// abandon ends all executions. After it returns, end does nothing.
func (r *runs) abandon(hand func(x *execution)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		x.ended = true
		delete(r.all, x)
		hand(x)
	}
}

// pick returns the executions for which pick is true.
func (r *runs) pick(pick func(x *execution) bool) []*execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	var picked []*execution
	for x := range r.all {
		if pick(x) {
			picked = append(picked, x)
		}
	}
	return picked
}

// update changes executions under the lock.
func (r *runs) update(xs []*execution, change func(x *execution)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range xs {
		change(x)
	}
}

// count is the number of executions that have not ended.
func (r *runs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}
