package eventqueue

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"eventsv2/internal/attributes"
	"eventsv2/internal/sqlstate"
)

// groupCommit has concurrent emits share inserts: emits that arrive while one is under way go into
// the next one together. Each emit returns after the commit of its own rows, and one that arrives
// alone does not wait. A transaction costs the database ten times as much as a row. For example, the first of ten concurrent
// emits begins an insert; the other nine wait for it, and share the next one.
type groupCommit struct {
	insert func(ctx context.Context, events []NewEvent) ([]Inserted, error)
	// notify has the notifications of committed events published, and does not wait until they are.
	notify func(parent string, events []NewEvent, inserted []Inserted)

	mu        sync.Mutex
	waiting   []*emitCall
	running   int           // goroutines of run
	took      time.Time     // when one of them took a group last
	idle      chan struct{} // closed when none runs; nil then
	lingering bool          // one of them lingers
	enough    int           // calls that it lingers for; 0 when they have come
	came      chan struct{} // holds a token when enough have come
}

const (
	// maxGroup is how many events one insert takes, and maxGroupBytes how many bytes of values. A
	// larger call than smallEmit or smallEmitBytes does not share an insert.
	maxGroup       = 1000
	maxGroupBytes  = 4 << 20
	smallEmit      = 100
	smallEmitBytes = 256 << 10
	// lingerFraction is the part of an insert's time that the next one waits for callers whose
	// emits have just returned: they are likely to emit again.
	lingerFraction = 4
	maxLinger      = 10 * time.Millisecond
	// maxInserts is how many inserts are under way at once when one takes longer
	// than slowInsert: a connection that hangs must not hold up all emits (I15).
	maxInserts = 4
	slowInsert = 250 * time.Millisecond

	// insertTakes bounds one insert, whatever happens to the connection.
	insertTakes = 30 * time.Second
)

// emitCall is one emit that waits.
type emitCall struct {
	events []NewEvent // copies: their caller may leave
	bytes  int        // of their values and attributes
	parent string     // the trace context of the caller

	// Written by the goroutine that inserts, read when done is closed.
	inserted []Inserted
	err      error
	done     chan struct{}

	// Of groupCommit.mu.
	left bool // its caller no longer waits for it
}

// emit inserts all the events or none, and returns when they are committed. When
// ctx ends before their insert has begun they are not inserted; after that, they
// may be or not, and if they are they are notified.
func (g *groupCommit) emit(ctx context.Context, traceparent string, events []NewEvent) ([]Inserted, error) {
	bytes := 0
	for i := range events {
		bytes += len(events[i].Value) + attributes.Bytes(events[i].Attributes)
	}
	// A unique key may have to wait for another transaction, and no other emit may wait with it
	// (I15).
	if len(events) > smallEmit || bytes > smallEmitBytes || slices.ContainsFunc(events, func(e NewEvent) bool { return e.UniqueKey != "" }) {
		return g.insert(ctx, events)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	call := &emitCall{events: slices.Clone(events), bytes: bytes, parent: traceparent, done: make(chan struct{})}
	for i := range call.events {
		call.events[i].Value = slices.Clone(events[i].Value)
		call.events[i].Attributes = maps.Clone(events[i].Attributes)
	}
	g.join(call)
	select {
	case <-call.done:
		return call.inserted, call.err
	case <-ctx.Done():
		if g.leave(call) {
			return nil, ctx.Err()
		}
		return call.inserted, call.err
	}
}

// join has a call wait for the next insert.
func (g *groupCommit) join(call *emitCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, call)
	switch {
	case g.running == 0 || g.running < maxInserts && time.Since(g.took) > slowInsert:
		g.running++
		g.took = time.Now() // as it is about to
		if g.idle == nil {
			g.idle = make(chan struct{})
		}
		go g.run()
	case g.enough > 0 && len(g.waiting) >= g.enough:
		g.enough = 0
		g.came <- struct{}{}
	}
}

// leave abandons a call, unless it has been served.
func (g *groupCommit) leave(call *emitCall) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-call.done:
		return false
	default:
	}
	call.left = true
	if i := slices.Index(g.waiting, call); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return true
}

// run inserts the waiting calls until there are none.
func (g *groupCommit) run() {
	for {
		group := g.next()
		if len(group) == 0 {
			return
		}
		began := time.Now()
		g.insertGroup(group)
		all := g.release(group)
		g.linger(all, min(time.Since(began)/lingerFraction, maxLinger))
	}
}

// release lets the callers of a group go on that was inserted or refused. It returns how many calls
// were in the group or wait now, counted before any caller can emit again.
func (g *groupCommit) release(group []*emitCall) (all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, call := range group {
		close(call.done)
		if call.left && call.err == nil {
			g.notify(call.parent, call.events, call.inserted)
		}
	}
	return len(group) + len(g.waiting)
}

// linger waits for a moment until as many calls wait as the last insert served or left waiting. One
// insert for all of them is better than two for a half each. A single caller that emits again and
// again does not wait.
func (g *groupCommit) linger(all int, most time.Duration) {
	g.mu.Lock()
	lingers := all > 1 && len(g.waiting) < all && !g.lingering
	if lingers {
		g.lingering, g.enough = true, all
	}
	g.mu.Unlock()
	if !lingers {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	waits := true
	select {
	case <-g.came:
		waits = false
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if waits && g.enough == 0 { // enough have come at the last moment
		<-g.came
	}
	g.lingering, g.enough = false, 0
}

// wait returns when nothing is being inserted, or when ctx ends.
func (g *groupCommit) wait(ctx context.Context) error {
	g.mu.Lock()
	idle := g.idle
	g.mu.Unlock()
	return waitFor(ctx, idle)
}

// next takes the calls of one insert. When there are none it ends run.
func (g *groupCommit) next() (group []*emitCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	events, bytes := 0, 0
	for _, call := range g.waiting {
		events += len(call.events)
		bytes += call.bytes
		if events > maxGroup || bytes > maxGroupBytes {
			break
		}
		group = append(group, call)
	}
	g.waiting = slices.Clone(g.waiting[len(group):])
	g.took = time.Now()
	if len(group) == 0 {
		if g.running--; g.running == 0 {
			close(g.idle)
			g.idle = nil
		}
	}
	return group
}

// insertGroup sets the result of each call. All of its inserts together take no longer than one
// may.
func (g *groupCommit) insertGroup(group []*emitCall) {
	ctx, cancel := context.WithTimeout(context.Background(), insertTakes)
	defer cancel()
	g.insertCalls(ctx, group)
}

func (g *groupCommit) insertCalls(ctx context.Context, calls []*emitCall) {
	var events []NewEvent
	for _, call := range calls {
		events = append(events, call.events...)
	}
	inserted, err := g.insertOnce(ctx, events)
	if sqlstate.Refused(err) && len(calls) > 1 {
		// Nothing was written. Halving finds the calls that the database refuses, so that they fail
		// alone (I15).
		half := len(calls) / 2
		g.insertCalls(ctx, calls[:half])
		g.insertCalls(ctx, calls[half:])
		return
	}
	for _, call := range calls {
		if call.err = err; err == nil {
			n := len(call.events)
			call.inserted, inserted = inserted[:n:n], inserted[n:]
		}
	}
}

// insertOnce turns a panic into an error: this goroutine belongs to no emitter.
func (g *groupCommit) insertOnce(ctx context.Context, events []NewEvent) (inserted []Inserted, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the insert panicked: %v\n%s", value, debug.Stack())
		}
	}()
	inserted, err = g.insert(ctx, events)
	if err == nil && len(inserted) != len(events) {
		err = fmt.Errorf("%d events became %d rows: events_v2 has a trigger or a rule that keeps rows out; take it away", len(events), len(inserted))
	}
	return inserted, err
}

// insert is the insert that emits share.
func (q *Queue) insert(ctx context.Context, events []NewEvent) (inserted []Inserted, err error) {
	commit := q.unanswered.await(time.Now(), events)
	defer func() { commit.over(err) }() // also when the store panics
	inserted, err = q.store.Insert(ctx, nil, events, q.mode())
	if err == nil {
		q.countEmits(events, inserted)
	}
	return inserted, err
}

// mode is NotifyModeSelf unless the notifier is known to be down: then no emit waits for it.
func (q *Queue) mode() NotifyMode {
	if q.publisher.Up() {
		return NotifyModeSelf
	}
	return NotifyModeLater
}
