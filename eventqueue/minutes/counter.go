// Package minutes counts what a program emits and runs, by handler and canvas, and hands the counts in
// to the database once a minute.
package minutes

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/cause"
	"eventsv2/internal/logkey"
)

// Counts counts the events of one handler on one canvas since the program last handed in its
// counts. Of a zero Canvas it is of all canvases that have no counts of their own, and of a zero
// eventqueue.Scope of all handlers that have none.
type Counts struct {
	eventqueue.Scope
	// Emitted are new events; a Repeat is none.
	Emitted int64
	// Completed, Failed and Retried are the runs that ended so: with the completion of their event,
	// with the end of it as FAILED, and with another try to come.
	Completed, Failed, Retried int64
	// Cancelled are events that were cancelled while they waited, or whose run ended because they were.
	Cancelled int64
	// Wait has, of each of these runs, how long its event had been due when it was claimed, and Run
	// how long the handler ran.
	Wait, Run Histogram
}

// Merge adds other counts. It shares no memory with them.
func (c *Counts) Merge(other *Counts) {
	c.Emitted += other.Emitted
	c.Completed += other.Completed
	c.Failed += other.Failed
	c.Retried += other.Retried
	c.Cancelled += other.Cancelled
	c.Wait.Merge(other.Wait)
	c.Run.Merge(other.Run)
}

// Events is how many emits, runs and cancels were counted.
func (c *Counts) Events() int64 {
	return c.Emitted + c.Completed + c.Failed + c.Retried + c.Cancelled
}

// Store takes in the counts of programs; pgstore.Store is one.
type Store interface {
	// AddMinutes adds counts to those of the current minute, by the database's clock, with one
	// statement, and returns the time of that clock. No scope may be named twice, and the scopes
	// with the most events come first: of a minute that has counts of as many scopes as it may,
	// the further ones are added to those of their handlers on all other canvases.
	AddMinutes(ctx context.Context, counts []Counts) (time.Time, error)
}

const (
	// minuteScopes is how many scopes one hand-in has: beyond it, those of all further canvases are
	// counted by their handlers, and beyond twice as many all further handlers together.
	minuteScopes = 1000
	// handInTakes bounds one hand-in.
	handInTakes = 10 * time.Second
	// handInMargin is how far from the beginning and the end of a minute counts are handed in, so
	// that each minute gets those of one hand-in.
	handInMargin = 5 * time.Second
)

// Observer sees what a Counter counts, at once. Its methods are called from many goroutines, and must
// return fast; they retain nothing of their arguments.
type Observer interface {
	// Emitted is called for each new event, with its scope.
	Emitted(scope eventqueue.Scope)
	// Ran is called for each run whose end was written.
	Ran(run *CountedRun)
}

// Counter counts what a program emits and runs, and hands the counts in to the database: with one
// statement in each minute in which there was something to count, and none in any other. It is safe
// for concurrent use, and has no goroutine between the hand-ins. A program that is killed loses what
// it has counted since the last one.
type Counter struct {
	store Store // nil: nothing is counted
	log   *zap.Logger
	phase time.Duration // from the beginning of each minute to the hand-in

	observer Observer // nil: none

	mu     sync.Mutex
	counts map[eventqueue.Scope]*Counts
	timer  *time.Timer   // runs while there are counts; nil otherwise
	ahead  time.Duration // how far the database's clock is ahead of this machine's

	handing chan struct{} // holds a token while no hand-in is under way
	failed  bool          // the last hand-in; of whoever has the token
	causes  cause.Log
}

// New makes the counts of a program. Without a store nothing is counted.
func New(store Store, jitter func(time.Duration) time.Duration, log *zap.Logger) *Counter {
	m := &Counter{store: store, log: log, counts: map[eventqueue.Scope]*Counts{}, handing: make(chan struct{}, 1)}
	if store != nil {
		m.phase = handInMargin + jitter(time.Minute-2*handInMargin)
	}
	m.handing <- struct{}{}
	return m
}

// Of returns the counter of a queue; of one that counts nothing, it is one that counts nothing.
func Of(queue *eventqueue.Queue) *Counter {
	if c, ok := queue.Counter().(*Counter); ok {
		return c
	}
	return New(nil, nil, queue.Logger())
}

// RunEnd is how a run that is counted has ended.
type RunEnd int

// The ends of runs, in the words of Counts.
const (
	RunCompleted RunEnd = iota
	RunFailed
	RunRetried
)

// CountedRun is a run that has ended.
type CountedRun struct {
	eventqueue.Scope
	End RunEnd
	// Waited is how long the event had been due when it was claimed, and Took how long the handler
	// ran.
	Waited, Took time.Duration
}

// Observe has an observer see what is counted from now on. Call it before anything is counted. A
// Counter without a store counts nothing, and its observer sees nothing.
func (m *Counter) Observe(observer Observer) { m.observer = observer }

// CountRuns counts runs. It retains nothing of its argument.
func (m *Counter) CountRuns(runs []CountedRun) {
	if m.store == nil {
		return
	}
	if m.observer != nil {
		for i := range runs {
			m.observer.Ran(&runs[i])
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range runs {
		run := &runs[i]
		c := m.of(run.Scope)
		switch run.End {
		case RunCompleted:
			c.Completed++
		case RunFailed:
			c.Failed++
		case RunRetried:
			c.Retried++
		}
		c.Wait.Add(run.Waited)
		c.Run.Add(run.Took)
	}
	m.arm()
}

// CountEmits counts new events, of the scopes that a function yields.
func (m *Counter) CountEmits(scopes iter.Seq[eventqueue.Scope]) {
	if m.store != nil && m.observer != nil {
		scopes(func(scope eventqueue.Scope) bool {
			m.observer.Emitted(scope)
			return true
		})
	}
	m.count(scopes, func(c *Counts) { c.Emitted++ })
}

// CountCancelled counts events that were cancelled, of the scopes that a function yields.
func (m *Counter) CountCancelled(scopes iter.Seq[eventqueue.Scope]) {
	m.count(scopes, func(c *Counts) { c.Cancelled++ })
}

func (m *Counter) count(scopes iter.Seq[eventqueue.Scope], add func(c *Counts)) {
	if m.store == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for scope := range scopes {
		add(m.of(scope))
	}
	m.arm()
}

// putBack adds counts that could not be handed in to those that have come since.
func (m *Counter) putBack(counts []Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range counts {
		m.of(counts[i].Scope).Merge(&counts[i])
	}
	m.arm()
}

// of returns the counts of a scope, or of what it is counted with when there are too many.
func (m *Counter) of(scope eventqueue.Scope) *Counts {
	for most := minuteScopes; ; most = 2 * minuteScopes {
		if c := m.counts[scope]; c != nil {
			return c
		}
		switch {
		case len(m.counts) < most || scope == eventqueue.Scope{}:
			c := &Counts{Scope: scope}
			m.counts[scope] = c
			return c
		case scope.Canvas != eventqueue.CanvasID{}:
			scope.Canvas = eventqueue.CanvasID{}
		default:
			scope = eventqueue.Scope{}
		}
	}
}

// arm has the counts handed in when it is time.
func (m *Counter) arm() {
	if m.timer == nil && len(m.counts) > 0 {
		m.timer = time.AfterFunc(m.untilHandIn(time.Now().Add(m.ahead)), func() { _ = m.HandIn(context.Background()) })
	}
}

// untilHandIn is the time from now, by the database's clock, to the next hand-in.
func (m *Counter) untilHandIn(now time.Time) time.Duration {
	wait := m.phase - now.Sub(now.Truncate(time.Minute))
	if wait <= 0 {
		wait += time.Minute
	}
	return wait
}

// HandIn hands in what was counted since the last time, at once; without any counts it sends
// nothing. A program that stops calls it, by way of Queue.Close. After a failure, which is logged and
// returned, the counts are handed in with those of the next minute. When the answer was lost, they
// are counted twice.
func (m *Counter) HandIn(ctx context.Context) error {
	select {
	case <-m.handing:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { m.handing <- struct{}{} }()
	counts := m.take()
	if len(counts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handInTakes)
	defer cancel()
	now, err := m.store.AddMinutes(ctx, counts)
	if err != nil {
		m.putBack(counts)
		if m.causes.Worth(err, !m.failed) {
			m.log.Warn("could not hand in the counts of a minute; they are handed in with the next one", zap.Int(logkey.Count, len(counts)), zap.Error(err))
		}
		m.failed = true
		return err
	}
	m.failed = false
	m.mu.Lock()
	m.ahead = time.Until(now)
	m.mu.Unlock()
	return nil
}

// take removes all counts, those of the most events first.
func (m *Counter) take() []Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
		m.timer = nil
	}
	counts := make([]Counts, 0, len(m.counts))
	for _, c := range m.counts {
		counts = append(counts, *c)
	}
	clear(m.counts)
	slices.SortFunc(counts, func(a, b Counts) int {
		return cmp.Or(cmp.Compare(b.Events(), a.Events()), slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
	})
	return counts
}
