package eventqueue

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// execution is a run in this worker, from claim to the writing of its end.
type execution struct {
	run       Run
	delivery  Delivery
	policy    Policy
	handler   Handler
	takenOver bool // from one whose lock had expired
	ctx       runContext
	began     time.Time

	// Owned by runs.mu:
	prev, next *execution // its neighbours among the runs
	renewed    time.Time  // when the claim or its last renewal was asked for
	leased     time.Time  // when the delivery was pulled or its lease extended
	ended      bool       // its end has been handed to the finisher
	place      Place      // of its row, until somebody may have written it
	// superseded says that this worker has claimed the event once more, so that
	// the lock had expired.
	superseded bool
}

// runs are the executions whose ends have not been written, for the heartbeat
// and the stop.
type runs struct {
	mu     sync.Mutex
	first  *execution             // of a list of all, in no order
	count  int                    // of that list
	latest map[EventID]*execution // of each event
	live   int                    // those that have not ended
	// stopped is why no run may go on, when the worker stops.
	stopped error
	// begun counts those that were added since full was asked.
	begun int
}

func newRuns() runs {
	return runs{latest: map[EventID]*execution{}}
}

// add takes in a new execution. An older one of the same event has lost its
// claim, and is told so; nothing more is asked or written in its name, so that
// no statement names an event twice (I5).
func (r *runs) add(x *execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	older, newer := r.latest[x.run.ID], x
	if older != nil && older.run.Attempt > x.run.Attempt { // whose claim was answered late
		older, newer = newer, older
	}
	if older != nil {
		older.superseded = true
		older.ctx.end(ErrLockLost)
	}
	r.latest[x.run.ID] = newer
	r.link(x)
	r.live++
	r.begun++
	if r.stopped != nil {
		x.ctx.end(r.stopped)
	}
}

func (r *runs) link(x *execution) {
	x.next = r.first
	if r.first != nil {
		r.first.prev = x
	}
	r.first = x
	r.count++
}

func (r *runs) unlink(x *execution) {
	if x.prev == nil {
		r.first = x.next
	} else {
		x.prev.next = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.prev, x.next = nil, nil
	r.count--
}

// all are the executions. The lock is held.
func (r *runs) all(yield func(*execution) bool) {
	for x := r.first; x != nil; x = x.next {
		if !yield(x) {
			return
		}
	}
}

// stop ends the contexts of all runs, and of those that may still begin.
func (r *runs) stop(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = cause
	for x := range r.all {
		x.ctx.end(cause)
	}
}

// end marks an execution as ended and hands its end over, unless it was
// abandoned before: then that has been done. hand must not block.
func (r *runs) end(x *execution, hand func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.ended {
		return
	}
	hand()
	x.ended = true
	r.live--
}

// abandon ends all executions that have not ended. After it returns, end does
// nothing.
func (r *runs) abandon(hand func(x *execution)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		if !x.ended {
			hand(x)
			x.ended = true
			r.live--
		}
	}
}

// remove forgets executions whose ends have been written, or given up.
func (r *runs) remove(ended []closing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range ended {
		x := ended[i].execution
		r.unlink(x)
		if r.latest[x.run.ID] == x {
			delete(r.latest, x.run.ID)
		}
	}
}

// current parts the ends whose claims may hold from those that are superseded. It
// gives them the places of their rows, for one try.
func (r *runs) current(batch []*finished) (current, lost []*finished) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current = batch[:0]
	for _, f := range batch {
		if f.superseded {
			lost = append(lost, f)
		} else {
			f.end.Place, f.place = f.place, 0
			current = append(current, f)
		}
	}
	return current, lost
}

// held returns the executions whose claim is to be kept and for which pick is
// true: those that wait for their end to be written, and those whose handler has
// time left. A handler that ignores its timeout loses its lock, and one that was
// superseded has lost it.
func (r *runs) held(now time.Time, pick func(x *execution) bool) []*execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	var picked []*execution
	for x := range r.all {
		if (x.ended || now.Before(x.ctx.deadline)) && !x.run.completed.Load() && !x.superseded && pick(x) {
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

// expire cancels the executions whose lock was not renewed for so long.
func (r *runs) expire(now time.Time, lockTimeout time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		if now.Sub(x.renewed) >= lockTimeout {
			x.ctx.end(ErrLockLost)
		}
	}
}

// unended is the number of executions that have not ended.
func (r *runs) unended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live
}

// full tells whether as many as enough are in hand, or have begun since the last
// time that it was asked.
func (r *runs) full(enough int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := max(r.count, r.begun) >= enough
	r.begun = 0
	return busy
}

// aboveMean returns the canvases that have at least as many executions as the
// mean of all canvases that have some.
func (r *runs) aboveMean() (above []CanvasID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := map[CanvasID]int{}
	for x := range r.all {
		count[x.run.Canvas]++
	}
	for canvas, n := range count {
		if n*len(count) >= r.count {
			above = append(above, canvas)
		}
	}
	slices.SortFunc(above, func(a, b CanvasID) int { return bytes.Compare(a[:], b[:]) })
	return above
}
