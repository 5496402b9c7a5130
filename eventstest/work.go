package eventstest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
)

// Attempt is one run of an event by its handler.
type Attempt struct {
	Event   eventqueue.EventID
	Canvas  eventqueue.CanvasID
	Handler eventqueue.HandlerKey

	// Err is what the handler returned, or an error for its panic or its time-out; nil if it has
	// completed the event.
	Err error

	// Label is the end of the run, as docs/state-machine.md has it: ExecutesToCompletion, RetryAllowed,
	// RetryTooMany, FailedForGood or Snoozed; or Released, if the event goes back as it was and stays due, as after
	// an error that opens the circuit breaker of the handler.
	Label machine.Label

	// Delay is the wait until the next attempt, where there is one.
	Delay time.Duration
}

// mostRuns is how many runs Drain takes for one that has no end.
const mostRuns = 10_000

// Work runs exactly one event that is due, and returns how that went: the one that has been due for the longest, and of
// several the one that was emitted first. Before, it emits the slots of crons that are due. It fails the test when
// nothing can run, and says what keeps each event that waits. It returns when the handler has returned and the end
// of the run is written. That the handler fails does not fail the test.
//
// A typed event is first run by its dispatch, which emits an event for each of its handlers that is not Synchronous.
func (q *Queue) Work() Attempt {
	q.t.Helper()
	q.upkeep()
	left := map[eventqueue.EventID]machine.Label{}
	attempt, ran := q.next(left)
	if !ran {
		q.t.Fatalf("eventstest: Work: nothing can run:\n%s", q.whyNot(left))
	}
	return attempt
}

// Drain does what Work does until nothing is due that can run, with what handlers and crons emit meanwhile, and
// returns the runs in their order. Events that are paused, or have no handler here, stay. Drain does not move the clock: what is to be tried again
// later waits for Advance. An event that goes back as it was (Released) runs once. It fails the test after 10,000 runs.
func (q *Queue) Drain() []Attempt {
	q.t.Helper()
	var all []Attempt
	left := map[eventqueue.EventID]machine.Label{}
	for before := -1; before < len(all); {
		before = len(all)
		q.upkeep()
		maps.DeleteFunc(left, func(_ eventqueue.EventID, label machine.Label) bool { return label != machine.Claimed })
		for attempt, ran := q.next(left); ran; attempt, ran = q.next(left) {
			if all = append(all, attempt); len(all) == q.mostRuns {
				q.t.Fatalf("eventstest: Drain: %d events have run, and more are due: does %s emit an event for itself, or fail without a wait?", q.mostRuns, attempt.Handler)
			}
		}
	}
	return all
}

// RequireDrained is Drain for handlers that should not fail: each run with an error, a snooze too, fails the test.
func (q *Queue) RequireDrained() []Attempt {
	q.t.Helper()
	all := q.Drain()
	var failed []string
	for _, a := range all {
		if a.Err != nil {
			failed = append(failed, fmt.Sprintf("\tevent %s by %s: %s: %s", a.Event, a.Handler, a.Label, shortened(a.Err.Error())))
		}
	}
	if len(failed) > 0 {
		q.t.Fatalf("eventstest: of %d runs %d have failed:\n%s", len(all), len(failed), strings.Join(failed[:min(len(failed), mostShown)], "\n"))
	}
	return all
}

// RunCron emits the event of a cron definition, whatever its schedule, runs it and returns how that went. The test fails if
// there is no such definition, or several canvases have one, and if its event cannot run.
func (q *Queue) RunCron(name string) Attempt {
	q.t.Helper()
	definitions, err := cronchecker.NewDefinitionsIn(q.config.Schema, q.config.Pool).List(q.t.Context(), nil)
	q.must("read the cron definitions", err)
	var names []string
	var found []cronchecker.Definition
	for _, d := range definitions {
		names = append(names, d.Name)
		if d.Name == name {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		q.t.Fatalf("eventstest: RunCron: %d cron definitions have the name %q; there are: %s", len(found), name, cmp.Or(strings.Join(names, ", "), "none"))
	}
	id, err := q.Service.Emit(q.t.Context(), found[0].Event(q.Now().Truncate(time.Second)))
	q.must("emit the event of cron "+name, err)
	attempt, label := q.try(id)
	if label != machine.Claimed {
		q.t.Fatalf("eventstest: RunCron: the event of cron %s cannot run:\n%s", name, q.whyNot(map[eventqueue.EventID]machine.Label{id: label}))
	}
	return attempt
}

// upkeep does once what cron and the relay do all the time.
func (q *Queue) upkeep() {
	q.t.Helper()
	ctx := q.t.Context()
	_, _, err := q.rules.LiftExpired(ctx)
	q.must("lift rules whose end has come", err)
	for more := true; more; {
		checked, err := q.checker.Check(ctx)
		q.must("emit cron slots", err)
		more = checked.More && checked.Emitted > 0
	}
	for more := true; more; {
		relayed, err := q.relay.Pass(ctx)
		q.must("relay notifications", err)
		more = relayed.More
	}
}

// next runs the first due event that can run. It notes in left which could not, and, as Claimed, which has run and is due as before.
func (q *Queue) next(left map[eventqueue.EventID]machine.Label) (Attempt, bool) {
	q.t.Helper()
	for _, id := range q.due() {
		if _, tried := left[id]; tried {
			continue
		}
		attempt, label := q.try(id)
		if label != machine.Claimed {
			left[id] = label
			continue
		}
		if attempt.Label == machine.Released {
			left[id] = label
		}
		return attempt, true
	}
	return Attempt{}, false
}

// due returns the events that no rule, delay or lock keeps from running.
func (q *Queue) due() (ids []eventqueue.EventID) {
	q.t.Helper()
	ctx := q.t.Context()
	for after, more := (eventqueue.Scope{}), true; more; more = after != (eventqueue.Scope{}) {
		events, next, err := q.Service.Store().Runnable(ctx, after, nil)
		q.must("find due events", err)
		for i := range events {
			ids = append(ids, events[i].ID)
		}
		after = next
	}
	rows, err := q.config.Schema.On(q.config.Pool).Query(ctx, `SELECT id FROM events_v2 WHERE id = ANY ($1::bigint[]) ORDER BY delay_until, id`, ids)
	q.must("find due events", err)
	ids, err = pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
	q.must("find due events", err)
	return ids
}

// try has a worker try one event. The label is Claimed if an event has run, and otherwise why it has not.
func (q *Queue) try(id eventqueue.EventID) (Attempt, machine.Label) {
	q.t.Helper()
	ctx, stop := context.WithCancel(q.t.Context())
	defer stop()
	outcomes := &outcomes{settled: func(o worker.Outcome) {
		if o.Event == id {
			stop()
		}
	}}
	one := make(chan eventqueue.Notification, 1)
	one <- eventqueue.Notification{Event: id}
	w, err := q.Service.NewWorker(plainStore{q.Service.Store()}, receiver(one), func(c *worker.Config) {
		c.MaxEvents, c.TTL, c.Concurrency, c.NoFallback = 1, 0, 1, true
		if c.Jitter == nil { // so that what a limit puts off is due when its window begins
			c.Jitter = func(time.Duration) time.Duration { return 0 }
		}
		c.Middleware = append(c.Middleware, outcomes.around)
		outcomes.observe = c.Observe
		c.Observe = outcomes.add
	})
	q.must("run events", err)
	q.must("run an event", w.Run(ctx))
	q.must("run an event", q.t.Context().Err())
	outcomes.mu.Lock()
	defer outcomes.mu.Unlock()
	label := machine.LockClaimFailed
	for _, o := range outcomes.all {
		if o.Attempt == 0 || o.Label == machine.OverLimit || o.Label == machine.Released && outcomes.returned == nil {
			label = o.Label
			continue
		}
		attempt := Attempt{Event: o.Event, Canvas: o.Canvas, Handler: o.Handler, Err: o.Err, Label: o.Label, Delay: o.Delay}
		if o.Label == machine.Released { // the worker has an error of its own, and waits by its own clock
			attempt.Err, attempt.Delay = outcomes.returned, 0
		}
		q.attempts = append(q.attempts, attempt)
		return attempt, machine.Claimed
	}
	return Attempt{}, label
}

// outcomes are those of one worker, without the beginnings of runs.
type outcomes struct {
	observe func(worker.Outcome) // may be nil
	settled func(worker.Outcome)
	mu      sync.Mutex
	all     []worker.Outcome

	returned error // by the handler; nil if it was not called as well
}

// around notes what a handler returns.
func (s *outcomes) around(next eventqueue.Handler) eventqueue.Handler {
	return eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
		err := next.Handle(ctx, run)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.returned = err
		return err
	})
}

func (s *outcomes) add(o worker.Outcome) {
	if s.observe != nil {
		s.observe(o)
	}
	if o.Label == machine.Claimed {
		return
	}
	s.mu.Lock()
	s.all = append(s.all, o)
	s.mu.Unlock()
	s.settled(o)
}

// plainStore hides what a worker does beside its events: it registers itself, listens, and keeps a connection.
type plainStore struct{ worker.Store }

// receiver delivers what was put into it.
type receiver chan eventqueue.Notification

func (r receiver) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	select {
	case n := <-r:
		return []eventqueue.Delivery{{Notification: n, AckID: n.Event.String()}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (receiver) Ack(context.Context, []eventqueue.Delivery) error { return nil }

func (receiver) Requeue(context.Context, []eventqueue.Delivery, time.Duration) error { return nil }

// mostShown is how many events a failure lists.
const mostShown = 20

// whyNot says of each event that waits what keeps it. left are those that were tried.
func (q *Queue) whyNot(left map[eventqueue.EventID]machine.Label) string {
	q.t.Helper()
	events, next, err := q.reader.List(q.t.Context(), inspect.Filter{}, "", false, 0, mostShown)
	q.must("list the events that wait", err)
	if len(events) == 0 {
		return "\tno event waits"
	}
	var lines []string
	for i := range events {
		lines = append(lines, "\t"+q.whyNotOf(&events[i], left[events[i].ID]))
	}
	if next != 0 {
		lines = append(lines, "\tand more")
	}
	return strings.Join(slices.Clip(lines), "\n")
}

func (q *Queue) whyNotOf(e *inspect.QueuedEvent, label machine.Label) string {
	about := fmt.Sprintf("event %s for %s: ", e.ID, e.Handler())
	switch {
	case e.State == inspect.Delayed:
		wait := (e.DelayUntil.Sub(q.Now()) - rounding + time.Millisecond - 1).Truncate(time.Millisecond)
		return about + fmt.Sprintf("is due in %s: Advance(%s) first", wait, wait)
	case label == machine.HandlerUnknown:
		return about + "no handler is registered for it"
	case label == machine.LockClaimFailed:
		return about + "its row is locked, as by a transaction of the test that has not ended"
	}
	explained, err := q.reader.Explain(q.t.Context(), e.ID)
	q.must("explain an event", err)
	return about + explained.Because().Why
}
