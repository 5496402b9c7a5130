package worker

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

const (
	// hungInterval is how often a worker looks for handlers that have not returned though their
	// contexts have ended. It looks at its own memory only.
	hungInterval = time.Second
	// hungAfter is how long a handler has for its return.
	hungAfter = time.Second
	// hungGrace is after how long its run is given up, which frees its slot.
	hungGrace = 5 * time.Second
	// warnHungEvery is how often a worker warns of a handler that hangs.
	warnHungEvery = time.Minute
	// maxStack is how much of the stack of such a handler is logged.
	maxStack = 8 << 10
)

// hungWatch finds handlers that hang: those that have not returned though their contexts have ended. Go cannot
// end a goroutine. So the worker says which they are, and after a grace gives up their runs: their slots
// serve other events (I15), while their goroutines go on beside them, MaxHung at most. A run that was
// given up keeps its claim as before: it is not renewed, and what its handler returns, whenever
// that is, counts only if no other worker has taken over the event (I5).
type hungWatch struct {
	part
	runs     *runs
	releaser *releaser
	warned   map[eventqueue.HandlerKey]time.Time
}

// look does what there is to do about handlers that hang now.
func (h *hungWatch) look() {
	now := time.Now()
	var stacks []byte // of all goroutines: getting them stops the program for a moment
	for _, late := range h.runs.overdue(now) {
		if key := late.run.Handler(); now.Sub(h.warned[key]) >= warnHungEvery {
			h.warned[key] = now
			if stacks == nil {
				stacks = allStacks()
			}
			h.warn(late, now, stacks)
		}
	}
	given, left := h.runs.giveUp(now, h.config.MaxHung)
	var slots, reserved vacated
	for _, x := range given {
		if x.delivery.notified() {
			slots.ran++
		} else {
			reserved.ran++
		}
	}
	if len(given) > 0 {
		h.log.Warn("runs of handlers that do not return were given up: their slots are free again, and their goroutines go on",
			zap.Int(logkey.Count, len(given)), zap.Int("further_may_hang", left))
		h.releaser.vacate(slots, reserved)
	}
}

func (h *hungWatch) warn(x overdueRun, now time.Time, stacks []byte) {
	h.log.Warn("a handler does not return though its context has ended; its event is left to other workers, and others of its handler may hang as well",
		zap.Stringer(logkey.Event, x.run.ID), zap.Stringer(logkey.Canvas, x.run.Canvas), zap.Stringer(logkey.Handler, x.run.Handler()),
		zap.Duration("over_for", now.Sub(x.over).Round(time.Millisecond)), zap.ByteString(logkey.Stack, x.stack(stacks)),
		zap.String(logkey.Remedy, "make the code in the stack return when the handler's context ends"))
}

// stack returns, of all stacks, that of the goroutine that runs the execution.
func (x *execution) stack(all []byte) []byte {
	mark := fmt.Appendf(nil, "{%#x, 0x0}", x.mark()[0])
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		for line := range bytes.SplitSeq(stack, []byte("\n")) {
			if bytes.Contains(line, []byte(".processMarked(")) && bytes.Contains(line, mark) {
				return stack[:min(len(stack), maxStack)]
			}
		}
	}
	return nil
}

func allStacks() []byte {
	const most = 64 << 20
	for size := 1 << 20; ; size *= 4 {
		stacks := make([]byte, size)
		if n := runtime.Stack(stacks, true); n < size || size >= most {
			return stacks[:n]
		}
	}
}

// overdueRun is a run whose handler hangs.
type overdueRun struct {
	*execution
	over time.Time // when its context ended
	slot bool      // it holds a slot
}

// overdue returns the runs whose handlers hang.
func (r *runs) overdue(now time.Time) (late []overdueRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		if over, hangs := x.hangs(now); hangs {
			late = append(late, overdueRun{x, over, !x.givenUp})
		}
	}
	return late
}

// hangs reports whether the handler of an execution has not returned though its context has ended, and
// when that was. The lock of the runs is held.
func (x *execution) hangs(now time.Time) (over time.Time, hangs bool) {
	if x.submitted || !x.calls.Load() {
		return over, false
	}
	over = x.ctx.endsAt()
	return over, now.Sub(over) >= hungAfter
}

// giveUp gives up the runs whose handlers have hung for the grace, as long as no more than most are.
// left is how many more may be.
func (r *runs) giveUp(now time.Time, most int) (given []*execution, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		if r.givenUp >= most {
			break
		}
		if over, hangs := x.hangs(now); hangs && !x.givenUp && now.Sub(over) >= hungGrace {
			x.givenUp = true
			r.givenUp++
			r.live--
			given = append(given, x)
		}
	}
	return given, max(most-r.givenUp, 0)
}

func (r *runs) slots(now time.Time, of int) Slots {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Slots{Of: of, Busy: r.count - r.givenUp}
	for x := range r.all {
		if _, hangs := x.hangs(now); hangs {
			s.Hung++
		}
		if !x.givenUp && (s.OldestSince.IsZero() || x.began.Before(s.OldestSince)) {
			s.OldestSince = x.began
		}
	}
	return s
}

// slotStore records how a worker is occupied, for operators; the Reserve of pgstore is one.
type slotStore interface {
	ReportSlots(ctx context.Context, self eventqueue.WorkerNumber, s Slots, open []OpenBreaker) error
}

// slotReports tell operators how a worker is occupied.
type slotReports struct {
	part
	number eventqueue.WorkerNumber
	store  slotStore // nil if there is none
	runs   *runs
	// breakers are reported as well.
	breakers *breakers
	busy     bool // as was reported last, or a breaker was open
}

// report is called with each heartbeat. For a worker that holds nothing, and whose breakers are closed, it sends nothing (I12).
func (r *slotReports) report(ctx context.Context) {
	now := r.runs.slots(time.Now(), r.config.Concurrency)
	open := r.breakers.open()
	busy := now.Busy > 0 || now.Hung > 0 || len(open) > 0
	if r.store == nil || !busy && !r.busy {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.config.LockTimeout/2)
	defer cancel()
	if err := r.store.ReportSlots(ctx, r.number, now, open); err != nil {
		r.log.Debug("could not report the slots in use", zap.Error(err)) // the heartbeat beside this one warns
		return
	}
	r.busy = busy
}
