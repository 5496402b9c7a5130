package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// diedError is that of a run that a target had in hand when its connections broke.
type diedError struct{}

func (diedError) Error() string { return "EOF" }
func (diedError) Lost() bool    { return true }

// A probe that ends for a reason of the worker's says nothing about the target: the breaker stays open.
func TestBreakerStaysOpenWhenAProbeIsEndedFromOutside(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*worker.WriteResult, eventqueue.EventID){
		"cancelled":         func(w *worker.WriteResult, id eventqueue.EventID) { w.Cancelled = append(w.Cancelled, id) },
		"its lock was lost": func(w *worker.WriteResult, id eventqueue.EventID) { w.Lost = append(w.Lost, id) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				l := newLively(s)
				var calls, ended atomic.Int64
				s.handle(eventqueue.Policy{BreakerAfter: 20}, func(ctx context.Context, run *eventqueue.Run) error {
					if calls.Add(1) == 21 {
						s.mu.Lock()
						s.ending = func(w *worker.WriteResult) { end(w, run.ID) }
						s.mu.Unlock()
						<-ctx.Done()
						ended.Add(1)
						return context.Canceled // as a client returns it, without the cause
					}
					return eventqueue.Unavailable(eventqueue.Permanent(errAway), 0)
				})
				defer s.startOn(l, worker.Config{Concurrency: 100, Heartbeat: time.Second})()
				l.emit(200)
				rig.Pass(3 * time.Minute)
				if n := l.endedAs(machine.FailedForGood); ended.Load() != 1 || n != 19 {
					t.Errorf("%d probes were ended, and %d events have failed, want one, and those before the breaker opened", ended.Load(), n)
				}
			})
		})
	}
}

// Connections that break say little about the target: they are probed in intervals, too, while the breaker is open.
func TestBreakerProbesBrokenConnectionsInIntervals(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	withTarget(t, 1, func() error {
		switch n := calls.Add(1); {
		case n <= 20:
			return eventqueue.Unavailable(errAway, 0)
		case n > 1000:
			return nil // or it would go on for ever, at one instant
		default:
			return diedError{}
		}
	}, func(l *lively) {
		l.emit(100)
		rig.Pass(10 * time.Minute)
		if n := calls.Load(); n < 40 || n > 160 {
			l.t.Errorf("the target was called %d times in ten minutes", n)
		}
	})
}

// Runs that are lost though each runs alone open the breaker: it is not the events that break their connections.
func TestBreakerOpensForRunsThatAreLostAlone(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	withTarget(t, 100, func() error { calls.Add(1); return diedError{} }, func(l *lively) {
		l.event = func(f *worker.ClaimResult) { f.Company = 1 }
		l.emit(100)
		rig.Pass(10 * time.Minute)
		if n := calls.Load(); n < 21 || n > 160 {
			l.t.Errorf("the target was called %d times in ten minutes, want 20 calls and some probes", n)
		}
	})
}

// A relay publishes again what is due and does not run. Such a notification does not go round beside the one that is there (I11).
func TestNotificationsDoNotMultiplyWhileABreakerIsOpen(t *testing.T) {
	t.Parallel()
	withTarget(t, 100, func() error { return eventqueue.Unavailable(errAway, 0) }, func(l *lively) {
		l.emit(100)
		for range 120 {
			rig.Pass(time.Minute)
			l.again()
		}
		before := l.pulled.Load()
		rig.Pass(time.Minute)
		if n := l.pulled.Load() - before; n > 500 { // two or three each, with one in circulation
			l.t.Errorf("%d deliveries of 100 events in a minute", n)
		}
	})
}

// A limit counts the probes, and not the events that wait beside them.
func TestOpenBreakerUsesLimitsForItsProbesOnly(t *testing.T) {
	t.Parallel()
	withTarget(t, 100, func() error { return eventqueue.Unavailable(errAway, 0) }, func(l *lively) {
		l.event = func(f *worker.ClaimResult) { f.Limited = true }
		l.emit(100)
		rig.Pass(time.Minute)
		l.mu.Lock()
		before := l.granted
		l.mu.Unlock()
		for range 60 {
			rig.Pass(time.Minute)
			l.again() // all at once, some of them when a probe is due
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := l.granted - before; n < 60 || n > 240 {
			l.t.Errorf("limits have let %d begin in an hour in which a probe ran each half a minute", n)
		}
	})
}

// A worker that ends after so many events does not count those that it has given back.
func TestOpenBreakerUsesNoEventsOfABound(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		l := newLively(s)
		var there atomic.Bool
		s.handle(eventqueue.Policy{BreakerAfter: 20}, func(context.Context, *eventqueue.Run) error {
			if there.Load() {
				return nil
			}
			return eventqueue.Unavailable(eventqueue.Permanent(errAway), 0)
		})
		defer s.startOn(l, worker.Config{Concurrency: 100, MaxEvents: 100})()
		l.emit(119)
		rig.Pass(10 * time.Minute)
		there.Store(true)
		rig.Pass(5 * time.Minute)
		if n := l.endedAs(machine.ExecutesToCompletion); n != 100-19 {
			t.Errorf("%d events have completed, and 19 failed, of a worker that ends after 100", n)
		}
	})
}
