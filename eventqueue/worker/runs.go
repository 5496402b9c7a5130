package worker

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"eventsv2/eventqueue"
)

// execution is a run in this worker, from its claim until its completion is written.
type execution struct {
	run       eventqueue.Run
	executor  *executor
	unique    bool // see ClaimResult.Unique
	grouped   bool // see ClaimResult.Grouped
	delivery  delivery
	policy    eventqueue.Policy
	handler   eventqueue.Handler
	breaker   *breaker      // nil: its policy has none
	takenOver bool          // from one whose lock had expired
	lostRun   bool          // and whose run is counted as failed
	company   int           // see ClaimResult.Company
	limit     time.Duration // for how long the handler may run
	ctx       runContext
	began     time.Time
	claimed   time.Time     // when the claim was asked for
	waited    time.Duration // from when it was due to the claim, by the database's clock

	valueApart bool // see ClaimResult.ValueApart

	// together is how many suspects run in this worker, as is recorded; 0: it is none.
	together atomic.Int32

	// completed: the completion is committed. completing: it was written in a transaction of the
	// handler's own, which may have committed. Both are read by the completer and the heartbeat
	// while an abandoned handler may still run.
	completed  atomic.Bool
	completing atomic.Bool

	calls atomic.Bool // the handler is being called

	result   atomic.Pointer[json.RawMessage] // that its handler has set; nil: none
	progress atomic.Pointer[Progress]        // that was not taken yet, to be written

	// Owned by runs.mu:
	prev, next *execution // its neighbours among the runs
	renewed    time.Time  // when the claim or its last renewal was asked for
	leased     time.Time  // when the delivery was pulled or its lease extended
	submitted  bool       // its completion is in the completer's batcher
	unrun      bool       // no handler is called: the event is released
	waits      bool       // for its run, with other suspects
	// unrenewable reports whether the database refuses to renew the claim, which is logged once.
	unrenewable bool
	rowID       RowID // of its row, until the row may have been written
	// superseded reports whether this worker has claimed the event once more, so that
	// the lock had expired.
	superseded bool
	// givenUp: its handler hangs, and its slot is free again.
	givenUp bool
}

// stackMark tells the stack of an execution from others. Go passes an array in memory, so a dump of stacks
// shows it as it was passed, and it costs a run nothing; arguments in registers are shown as they were once.
type stackMark [2]uintptr

func (x *execution) mark() stackMark { return stackMark{uintptr(unsafe.Pointer(x)), 0} }

func (x *execution) claim() Claim {
	return Claim{Event: x.run.ID, Attempt: x.run.Attempt, ID: x.run.ClaimID}
}

// resultSet is the result that the handler has set; nil: none.
func (x *execution) resultSet() json.RawMessage {
	if result := x.result.Load(); result != nil {
		return *result
	}
	return nil
}

// runs are the executions whose completions have not been written, for the heartbeat and the stop.
type runs struct {
	mu     sync.Mutex
	first  *execution                        // of a list of all, in no order
	count  int                               // of that list
	latest map[eventqueue.EventID]*execution // of each event
	live   int                               // those that have not been submitted, nor given up
	// givenUp counts those of the list that were given up.
	givenUp int
	// stopped is why no run may go on, when the worker stops.
	stopped error
	// begun counts those that were added since full was asked.
	begun int
}

func newRuns() *runs {
	return &runs{latest: map[eventqueue.EventID]*execution{}}
}

// add adds an execution. An older one of the same event has lost its claim, and its context ends.
// Nothing more is asked or written for it, so that no statement names an event twice (I5).
func (r *runs) add(x *execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	older, newer := r.latest[x.run.ID], x
	if older != nil && older.run.Attempt > x.run.Attempt { // whose claim was answered late
		older, newer = newer, older
	}
	if older != nil {
		older.superseded = true
		older.ctx.end(eventqueue.ErrLockLost)
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

// submit marks an execution as submitted and calls put, unless it was abandoned before: then that
// has been done. put must not block.
func (r *runs) submit(x *execution, put func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.submitted {
		return
	}
	put()
	r.submitted(x)
}

// submitted marks an execution. The lock is held.
func (r *runs) submitted(x *execution) {
	x.submitted = true
	if !x.givenUp {
		r.live--
	}
}

// abandon submits all executions that are still running. After it returns, submit does nothing.
func (r *runs) abandon(put func(x *execution)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		if !x.submitted {
			put(x)
			r.submitted(x)
		}
	}
}

// remove deletes executions whose completions were written, refused or abandoned.
func (r *runs) remove(resolved []resolvedRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range resolved {
		x := resolved[i].execution
		r.unlink(x)
		if x.givenUp {
			r.givenUp--
		}
		if r.latest[x.run.ID] == x {
			delete(r.latest, x.run.ID)
		}
	}
}

// current separates the runs whose claims may hold from those that are superseded. It gives the
// former their row ids, for one try.
func (r *runs) current(batch []*completedRun) (current, lost []*completedRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current = batch[:0]
	for _, f := range batch {
		if f.superseded {
			lost = append(lost, f)
		} else {
			f.completion.RowID, f.rowID = f.rowID, 0
			current = append(current, f)
		}
	}
	return current, lost
}

// held returns the executions whose claims have to be renewed and for which pick is true: those
// that wait for their completion to be written or for their run, and those whose handler has time left. A handler
// that ignores its timeout, or the end of its context until its run is given up, loses its lock, and a superseded one has
// lost it. An event that is released unrun needs no lock.
func (r *runs) held(now time.Time, pick func(x *execution) bool) []*execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	var picked []*execution
	for x := range r.all {
		if (x.submitted || x.waits || now.Before(x.ctx.deadline) && !x.givenUp) && !x.completed.Load() && !x.superseded && !x.unrun && pick(x) {
			picked = append(picked, x)
		}
	}
	return picked
}

// renewedAt is when the claim of an execution, or its last renewal, was asked for.
func (r *runs) renewedAt(x *execution) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return x.renewed
}

// oldest is when the first of the executions was renewed; without any there is none.
func (r *runs) oldest(xs []*execution) (at time.Time, any bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range xs {
		if !any || x.renewed.Before(at) {
			at, any = x.renewed, true
		}
	}
	return at, any
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
			x.ctx.end(eventqueue.ErrLockLost)
		}
	}
}

// unended returns the number of executions that have not been submitted, nor given up.
func (r *runs) unended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live
}

// full reports whether at least enough runs are held, or have begun since the last call.
func (r *runs) full(enough int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := max(r.count-r.givenUp, r.begun) >= enough
	r.begun = 0
	return busy
}

// aboveMean returns the canvases that have at least as many executions as the
// mean of all canvases that have some.
func (r *runs) aboveMean() (above []eventqueue.CanvasID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := map[eventqueue.CanvasID]int{}
	for x := range r.all {
		count[x.run.Canvas]++
	}
	for canvas, n := range count {
		if n*len(count) >= r.count {
			above = append(above, canvas)
		}
	}
	slices.SortFunc(above, func(a, b eventqueue.CanvasID) int { return bytes.Compare(a[:], b[:]) })
	return above
}
