package worker

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
)

// How often a full worker reads the events of other canvases: every fairnessInterval, half as often
// after each pass that finds none, down to fairnessMaxInterval, and sooner while there are more
// pages.
const (
	fairnessInterval    = time.Second
	fairnessMaxInterval = 4 * time.Second
	fairnessMinInterval = 100 * time.Millisecond
	// fairnessTimeout bounds one pass. After a pass, the next one waits at least fairnessPause
	// times as long as that took, so that the load on the database stays small, whatever state the
	// table is in.
	fairnessTimeout = 2 * time.Second
	fairnessPause   = 10
	// reservedFraction is the part of the slots that is reserved for them. A worker with fewer
	// slots reserves none: there, they wait for the next slot that comes free.
	reservedFraction = 16
	// fullPercent of the slots make a worker full. Some are always on their way
	// between one event and the next.
	fullPercent = 75
)

// fairness has a busy worker serve every canvas.
type fairness struct {
	part
	handlers  *eventqueue.Handlers
	runs      *runs
	reserved  *slots
	decider   *decider
	pulledAll *atomic.Bool // see puller
	// busy are the canvases with the most runs, the last time that there were any.
	busy []eventqueue.CanvasID
}

// run gives every canvas its part of this worker (I15). The notifier delivers in its own order:
// behind a hundred thousand notifications of one canvas, that of another's single event comes last.
// So while this worker is full, it asks the database for runnable events of the canvases that have
// fewer runs than the mean, and runs them in reserved slots. A worker that is not full asks
// nothing.
//
// These events are claimed as all others are. Their notifications come later,
// find them gone, and are dropped.
func (f *fairness) run(ctx, work context.Context) {
	wait := backoff.New(f.config.Jitter)
	interval := fairnessInterval
	for after := (eventqueue.Scope{}); ctx.Err() == nil; {
		if !f.isFull() {
			interval = fairnessInterval
			backoff.Sleep(ctx, f.jittered(interval))
			continue
		}
		began := time.Now()
		pass, err := f.claimOnce(ctx, work, after)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("could not query runnable events of other canvases", zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
			wait.Pause(ctx)
		} else {
			wait.Reset()
		}
		after = pass.next
		interval = min(2*interval, fairnessMaxInterval)
		if pass.claimed > 0 {
			interval = fairnessInterval
		}
		rest := f.jittered(interval)
		if pass.more {
			rest = fairnessMinInterval
		}
		backoff.Sleep(ctx, max(rest, fairnessPause*min(time.Since(began), fairnessTimeout)))
	}
}

// jittered is an interval with jitter.
func (f *fairness) jittered(interval time.Duration) time.Duration {
	return interval*9/10 + f.config.Jitter(interval/5)
}

// isFull reports whether events wait behind those that run: a pull brought as many as were asked
// for since the last call, or the slots are taken.
func (f *fairness) isFull() bool {
	full := f.slotsFull()
	return f.pulledAll.Swap(false) || full
}

func (f *fairness) slotsFull() bool { return f.runs.full(max(f.config.Concurrency*fullPercent/100, 1)) }

// fairnessPass is the result of one pass.
type fairnessPass struct {
	next    eventqueue.Scope // where the next one begins
	claimed int              // events to run
	more    bool             // there are more events than this one took
}

// claimOnce does one pass, from the given scope on.
func (f *fairness) claimOnce(ctx, work context.Context, after eventqueue.Scope) (fairnessPass, error) {
	// Read before and after: it may take long until a slot is free, and the run that has freed it
	// counts.
	above := f.runs.aboveMean()
	n, err := f.reserved.take(ctx, f.config.ClaimBatch)
	if err != nil {
		return fairnessPass{next: after}, err
	}
	if above = append(above, f.runs.aboveMean()...); len(above) > 0 {
		f.busy = above
	} else if len(f.busy) == 0 {
		// The first pulled events are still being claimed: it is not known yet which canvas is
		// busy, and it would get these slots.
		f.reserved.give(n)
		return fairnessPass{next: after}, nil
	}
	events, next, err := f.runnable(ctx, after, f.busy)
	if err != nil {
		f.reserved.give(n)
		return fairnessPass{next: after}, err
	}
	chosen := pickEvenly(f.runnableHere(events), n)
	f.reserved.give(n - len(chosen))
	if len(chosen) > 0 {
		if err := f.decider.claim(ctx, work, chosen); err != nil {
			f.reserved.give(len(chosen))
			return fairnessPass{next: next}, err
		}
	}
	return fairnessPass{next, len(chosen), len(chosen) == n || next != eventqueue.Scope{}}, nil
}

// runnableHere are those of the events that this worker has handlers for, whose breakers are not open.
func (f *fairness) runnableHere(events []eventqueue.Event) []eventqueue.Event {
	return slices.DeleteFunc(events, func(e eventqueue.Event) bool {
		_, known := f.handlers.Lookup(&e)
		return !known || f.decider.breakers.openFor(e.Canvas, e.Handler()) > 0
	})
}

func (f *fairness) runnable(ctx context.Context, after eventqueue.Scope, except []eventqueue.CanvasID) ([]eventqueue.Event, eventqueue.Scope, error) {
	ctx, cancel := context.WithTimeout(ctx, fairnessTimeout)
	defer cancel()
	return f.store.Runnable(ctx, after, except)
}

// pickEvenly takes at most n events, one of each canvas per round.
func pickEvenly(events []eventqueue.Event, n int) []delivery {
	byCanvas := map[eventqueue.CanvasID][]delivery{}
	for _, e := range events {
		byCanvas[e.Canvas] = append(byCanvas[e.Canvas], unnotified(&e))
	}
	canvases := slices.SortedFunc(maps.Keys(byCanvas), func(a, b eventqueue.CanvasID) int { return slices.Compare(a[:], b[:]) })
	var chosen []delivery
	for round := 0; len(chosen) < n; round++ {
		before := len(chosen)
		for _, canvas := range canvases {
			if waiting := byCanvas[canvas]; round < len(waiting) && len(chosen) < n {
				chosen = append(chosen, waiting[round])
			}
		}
		if len(chosen) == before {
			break
		}
	}
	return chosen
}
