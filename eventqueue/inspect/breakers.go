package inspect

import (
	"fmt"
	"slices"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/workerhandlers"
)

// breaker returns the open circuit breaker of a handler on a canvas; nil if it is closed.
func (w *Worker) breaker(canvas eventqueue.CanvasID, key eventqueue.HandlerKey) *workerhandlers.Breaker {
	h := eventqueue.CanvasHandler{Canvas: canvas, Key: key}
	if !slices.Contains(w.Handlers.OnCanvas, h) {
		h.Canvas = eventqueue.CanvasID{} // its handler of every canvas runs the events
	}
	for i := range w.Breakers {
		if b := &w.Breakers[i]; b.Of() == h {
			return b
		}
	}
	return nil
}

// meet counts the circuit breaker of a worker, if it is open.
func (f *facts) meet(b *workerhandlers.Breaker) {
	if b == nil {
		return
	}
	f.away++
	if f.breaker == nil || b.Since.Before(f.breaker.Since) {
		f.breaker = b
	}
}

// away says that the circuit breaker of a handler is open in all workers that have it, with any modifier.
func (s Serving) away(scope eventqueue.Scope) (why string) {
	workers := s.of(scope)
	for _, w := range workers {
		i := slices.IndexFunc(w.Breakers, func(b workerhandlers.Breaker) bool {
			return b.Module == scope.Module && b.Name == scope.Name && (b.Canvas == nil || *b.Canvas == scope.Canvas)
		})
		if i < 0 {
			return ""
		}
		why = openIn(len(workers), w.Breakers[i].Error)
	}
	return why
}

// targetAway is for an event of a handler whose circuit breakers are all open.
func (f *facts) targetAway() Reason {
	return Reason{machine.BreakerOpen, openIn(f.away, f.breaker.Error) + fmt.Sprintf(" It opened %s. A probe each half a minute, or more often, finds out whether it is back.", at(f.breaker.Since, f.asOf())),
		"Restore what the handler calls, or correct its address and rights; the events then run by themselves."}
}

// openIn says that the circuit breaker of a handler is open in all workers that have it, and why.
func openIn(workers int, why string) string {
	where := "the worker that has it"
	if workers > 1 {
		where = fmt.Sprintf("all %d workers that have it", workers)
	}
	return fmt.Sprintf("What the handler calls is away, so its circuit breaker is open in %s: %s.", where, strings.TrimRight(printable(why), "."))
}
