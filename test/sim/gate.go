package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"
)

// errors that calls end with.
var (
	errKilled  = errors.New("the process is dead")
	errRefused = errors.New("the connection was refused")
	errBefore  = errors.New("the request was lost")
	errAfter   = errors.New("the answer was lost")
)

// target is what a call goes to; it decides which faults may befall it.
type target int

const (
	inside    target = iota // the process itself: no faults
	database                // the store
	notifying               // the notifier
	outside                 // the outside store
)

// call is somebody who stands at the gate.
type call struct {
	who   *process
	to    target
	op    string
	key   string
	ready func() time.Time // when it may pass; nil: always

	// Guarded by the gate's lock:
	from    time.Time // it may not pass before
	hangs   bool      // during an outage it waits instead of failing
	expired bool      // its context has ended
	answer  chan verdict
}

// verdict is how a call passes the gate.
type verdict struct {
	err   error         // it does not happen and ends with this
	lost  error         // it happens, and its caller is told this
	reply time.Duration // the answer takes so long
}

// enter waits at the gate. A context that ends lets the call through, at the
// controller's time, with the context's error.
func (w *world) enter(ctx context.Context, c *call) verdict {
	c.answer = make(chan verdict, 1)
	w.mu.Lock()
	if c.who.dead {
		w.mu.Unlock()
		return verdict{err: errKilled}
	}
	w.arrivals = append(w.arrivals, c)
	w.mu.Unlock()
	w.poke()
	select {
	case v := <-c.answer:
		return v
	case <-ctx.Done():
	}
	w.mu.Lock()
	c.expired = true
	w.mu.Unlock()
	w.poke()
	v := <-c.answer
	if errors.Is(v.err, context.Canceled) {
		v.err = ctx.Err()
	}
	return v
}

// never is later than anything that is simulated.
func (w *world) never() time.Time { return w.start.Add(1000 * time.Hour) }

// poke tells the controller that something has changed at the gate.
func (w *world) poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// do takes a call through the gate, does it and brings back the answer.
func (p *process) do(ctx context.Context, c call, f func() (result string, err error)) error {
	if err := ctx.Err(); err != nil {
		return err // nobody hears of a call with a context that has ended
	}
	c.who = p
	v := p.w.enter(ctx, &c)
	if v.err != nil {
		return v.err
	}
	if c.to == database {
		kind := int64(0)
		if p.w.refuses {
			kind = kindsOf[c.op]
		}
		p.w.tables.name(kind)
	}
	result, err := f()
	if c.to == database {
		p.w.tables.sync()
	}
	if err != nil {
		result = strings.TrimSpace(result + " " + err.Error())
	}
	p.w.note("%s %s %s -> %s%s", p.name, c.op, c.key, result, verdictNote(v))
	if v.reply > 0 {
		answer := call{who: p, op: c.op + " answered", key: c.key, from: time.Now().Add(v.reply)}
		if v := p.w.enter(ctx, &answer); v.err != nil {
			return v.err
		}
		p.w.note("%s %s %s", p.name, answer.op, c.key)
	}
	if v.lost != nil {
		return v.lost
	}
	return err
}

func verdictNote(v verdict) string {
	switch {
	case v.lost != nil:
		return " (answer lost)"
	case v.reply > 0:
		return fmt.Sprintf(" (answer takes %s)", v.reply)
	default:
		return ""
	}
}

// admit sorts those who have come since the last step and gives each its delay.
func (w *world) admit() {
	slices.SortStableFunc(w.arrivals, func(a, b *call) int {
		return cmp.Or(strings.Compare(a.who.name, b.who.name), strings.Compare(a.op, b.op), strings.Compare(a.key, b.key))
	})
	for _, c := range w.arrivals {
		w.delay(c)
	}
	w.waiting = append(w.waiting, w.arrivals...)
	w.arrivals = w.arrivals[:0]
}

// mayPass reports whether the controller may choose a call now.
func (w *world) mayPass(c *call, now time.Time) bool {
	switch {
	case c.who.frozen || w.holiday && c.who.works:
		return false
	case c.expired:
		return true
	case now.Before(c.from):
		return false
	case w.isDown(c):
		return !c.hangs
	default:
		return c.ready == nil || !c.ready().After(now)
	}
}

// step lets one call through; false means that none can pass.
func (w *world) step() bool {
	w.mu.Lock()
	w.admit()
	now := time.Now()
	var free []int
	for i, c := range w.waiting {
		if w.mayPass(c, now) {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		w.mu.Unlock()
		return false
	}
	i := free[w.dice.IntN(len(free))]
	c := w.waiting[i]
	w.waiting = slices.Delete(w.waiting, i, i+1)
	v := w.judge(c)
	w.mu.Unlock()
	if v.err != nil {
		w.note("%s %s %s: %v", c.who.name, c.op, c.key, v.err)
	}
	c.answer <- v
	return true
}

// serve lets calls through until ended is closed. It is the controller.
func (w *world) serve(ended <-chan struct{}) {
	for {
		synctest.Wait()
		select {
		case <-ended:
			return
		default:
		}
		if d, planned := w.plan.take(); planned {
			if d.what != "" && d.what != quiescence {
				w.note("nemesis: %s", d.what)
			}
			d.do()
			continue
		}
		if w.step() {
			synctest.Wait()
			time.Sleep(w.dice.between(20*time.Microsecond, 400*time.Microsecond)) // things take time
			continue
		}
		w.idle(ended)
	}
}

// idle waits until somebody comes to the gate, or may pass it, or something
// is planned.
func (w *world) idle(ended <-chan struct{}) {
	w.mu.Lock()
	now := time.Now()
	next := w.plan.next()
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	for _, c := range w.waiting {
		sooner(c.from)
		if c.ready != nil {
			sooner(c.ready())
		}
	}
	w.mu.Unlock()
	timer := time.NewTimer(next.Sub(now))
	defer timer.Stop()
	select {
	case <-w.poked:
	case <-timer.C:
	case <-ended:
	}
}
