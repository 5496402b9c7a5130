package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// lively is a script whose notifications come again when they are due, which claims for the handlers asked for only, and
// whose events end.
type lively struct {
	*script

	queue sync.Mutex
	due   []eventqueue.Delivery
	more  chan struct{}
	ended map[machine.Label]int
	last  eventqueue.EventID
	// event changes the events that are emitted; nil: it does not.
	event   func(*worker.ClaimResult)
	granted int          // by rate limits
	pulled  atomic.Int64 // deliveries
}

func newLively(s *script) *lively {
	return &lively{script: s, more: make(chan struct{}, 1), ended: map[machine.Label]int{}}
}

func (l *lively) deliver(deliveries ...eventqueue.Delivery) {
	l.queue.Lock()
	l.due = append(l.due, deliveries...)
	l.queue.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// emit has n events delivered.
func (l *lively) emit(n int) {
	deliveries := make([]eventqueue.Delivery, n)
	l.mu.Lock()
	for i := range deliveries {
		l.last++
		event := l.claimed(l.last)
		if l.event != nil {
			l.event(event)
		}
		l.found[event.Event.ID] = *event
		deliveries[i] = eventqueue.Delivery{Notification: eventqueue.Notification{Event: event.Event.ID, Canvas: rig.Canvas}, AckID: event.Event.ID.String()}
	}
	l.mu.Unlock()
	l.deliver(deliveries...)
}

// Pull returns what is due.
func (l *lively) Pull(ctx context.Context, most int) ([]eventqueue.Delivery, error) {
	for {
		l.queue.Lock()
		n := min(most, len(l.due))
		taken := append([]eventqueue.Delivery(nil), l.due[:n]...)
		l.due = l.due[n:]
		l.pulled.Add(int64(n))
		rest := len(l.due) > 0
		l.queue.Unlock()
		if n > 0 && rest {
			l.deliver()
		}
		if n > 0 {
			return taken, nil
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Requeue has the notifications come again.
func (l *lively) Requeue(_ context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	again := append([]eventqueue.Delivery(nil), deliveries...)
	time.AfterFunc(after, func() { l.deliver(again...) })
	return nil
}

// Claim claims events of known handlers that have not ended.
func (l *lively) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	found, err := l.script.Claim(ctx, ids, known, claim)
	for i := range found {
		if !known.Has(rig.Canvas, found[i].Event.Handler()) {
			found[i].Facts.HandlerKnown, found[i].Facts.Claimed = false, false
		}
	}
	return found, err
}

// TakeRate grants everything.
func (l *lively) TakeRate(_ context.Context, asks []worker.RateAsk) ([]ratelimit.Answer, error) {
	answers := make([]ratelimit.Answer, len(asks))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, ask := range asks {
		answers[i].Granted = ask.Want
		l.granted += ask.Want
	}
	return answers, nil
}

// Complete ends events, or leaves them to be claimed again.
func (l *lively) Complete(ctx context.Context, db eventqueue.DB, completions []worker.Completion, retain bool) (worker.WriteResult, error) {
	written, err := l.script.Complete(ctx, db, completions, retain)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range completions {
		l.ended[c.Label]++
		if c.Label != machine.Released && c.Label != machine.RetryAllowed && c.Label != machine.Snoozed {
			delete(l.found, c.Event)
		}
	}
	return written, err
}

// again is a relay that publishes all events again that have not ended.
func (l *lively) again() {
	var deliveries []eventqueue.Delivery
	l.mu.Lock()
	for id := range l.found {
		deliveries = append(deliveries, eventqueue.Delivery{Notification: eventqueue.Notification{Event: id, Canvas: rig.Canvas}, AckID: id.String()})
	}
	l.mu.Unlock()
	l.deliver(deliveries...)
}

func (l *lively) endedAs(label machine.Label) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended[label]
}

var errAway = errors.New("503 away")

// withTarget runs a test of a handler that calls something, and has a breaker after 20 runs.
func withTarget(t *testing.T, concurrency int, call func() error, f func(l *lively)) {
	t.Helper()
	inVirtualTime(t, func(s *script) {
		l := newLively(s)
		s.handle(eventqueue.Policy{BreakerAfter: 20}, func(context.Context, *eventqueue.Run) error { return call() })
		defer s.startOn(l, worker.Config{Concurrency: concurrency})()
		f(l)
	})
}

// A target that refuses everything for an hour costs 19 events, and gets the calls until its breaker opens, and one each half a minute.
func TestBreakerSparesEventsWhileTheTargetIsAway(t *testing.T) {
	t.Parallel()
	var there atomic.Bool
	var calls atomic.Int64
	withTarget(t, 100, func() error {
		calls.Add(1)
		if there.Load() {
			return nil
		}
		return eventqueue.Unavailable(eventqueue.Permanent(errAway), 0)
	}, func(l *lively) {
		l.emit(1000)
		rig.Pass(time.Minute)
		if n := calls.Load(); n < 21 || n > 40 {
			l.t.Errorf("the target was called %d times in a minute, want 20 calls and some probes", n)
		}
		rig.Pass(59 * time.Minute)
		if n := calls.Load(); n < 100 || n > 150 {
			l.t.Errorf("the target was called %d times in an hour, want 20 calls and a probe each half a minute", n)
		}
		if n := l.endedAs(machine.FailedForGood); n != 19 {
			l.t.Errorf("%d events have failed, want those before the breaker opened", n)
		}
		there.Store(true)
		rig.Pass(2 * time.Minute)
		if n := l.endedAs(machine.ExecutesToCompletion); n != 1000-19 {
			l.t.Errorf("%d events have completed after the target came back", n)
		}
		l.emit(500)
		rig.Pass(time.Second)
		if n := l.endedAs(machine.ExecutesToCompletion); n != 1500-19 {
			l.t.Errorf("%d events have completed a second after 500 more", n)
		}
	})
}

// A target that names a time is not called before.
func TestBreakerHeedsRetryAfter(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	withTarget(t, 100, func() error { calls.Add(1); return eventqueue.Unavailable(errAway, 5*time.Minute) }, func(l *lively) {
		l.emit(50)
		rig.Pass(4 * time.Minute)
		if n := calls.Load(); n != 20 {
			l.t.Errorf("the target was called %d times within the time that it has asked for", n)
		}
		rig.Pass(2 * time.Minute)
		if n := calls.Load(); n != 21 {
			l.t.Errorf("the target was called %d times, want one probe after the time that it has asked for", n)
		}
	})
}

// Runs that fail and have reached their target, and those that succeed, keep the breaker closed.
func TestBreakerStaysClosedWhileTheTargetAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(n int64) error{
		"errors of the event": func(int64) error { return eventqueue.Permanent(errors.New("400")) },
		"each twentieth call answered": func(n int64) error {
			if n%20 == 0 {
				return nil
			}
			return eventqueue.Unavailable(eventqueue.Permanent(errAway), 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			withTarget(t, 1, func() error { return answer(calls.Add(1)) }, func(l *lively) {
				l.emit(1000)
				rig.Pass(10 * time.Second)
				if n := calls.Load(); n != 1000 || l.endedAs(machine.Released) != 0 {
					l.t.Errorf("%d of 1000 events have run, and %d were put off", n, l.endedAs(machine.Released))
				}
			})
		})
	}
}

// What takes long is not away: after a second all slots are used.
func TestBreakerLetsASlowTargetHaveAllSlots(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	withTarget(t, 100, func() error { calls.Add(1); <-time.After(30 * time.Second); return nil }, func(l *lively) {
		l.emit(90)
		rig.Pass(10 * time.Millisecond)
		if n := calls.Load(); n > 20 {
			l.t.Errorf("%d calls are under way before the first one was answered", n)
		}
		rig.Pass(2 * time.Second)
		if n := calls.Load(); n != 90 {
			l.t.Errorf("%d calls are under way after two seconds, want all", n)
		}
		rig.Pass(time.Minute)
	})
}

// A probe that never returns is followed by another one.
func TestBreakerProbesAgainAfterAProbeThatHangs(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var hang chan struct{}
	withTarget(t, 100, func() error {
		switch n := calls.Add(1); {
		case n <= 20:
			return eventqueue.Unavailable(errAway, 0)
		case n == 21:
			<-hang
		}
		return nil
	}, func(l *lively) {
		hang = make(chan struct{}) // of the bubble
		defer close(hang)
		l.emit(50)
		rig.Pass(3 * time.Minute)
		if n := l.endedAs(machine.ExecutesToCompletion); n < 49 {
			l.t.Errorf("%d events of 50 have completed though only one probe hangs", n)
		}
	})
}

// Operators see an open breaker at the worker and in explain, also while nothing runs, until it is closed.
func TestOpenBreakerShowsInWorkerListAndExplain(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	var there atomic.Bool
	policy := rig.Quick()
	policy.BreakerAfter = 2
	r.Handle(func(context.Context, *eventqueue.Run) error {
		if there.Load() {
			return nil
		}
		return eventqueue.Unavailable(errAway, 0)
	}, policy)
	r.Emit(r.Copies(5)...)
	r.Start(worker.Config{Heartbeat: 10 * time.Millisecond})
	reader := inspect.New(r.Pool)
	open := func() int {
		workers, err := reader.Workers(testenv.Context(t))
		if err != nil || len(workers) > 1 {
			t.Fatalf("%d workers, and %v", len(workers), err)
		}
		if len(workers) == 0 {
			return 0
		}
		return len(workers[0].Breakers)
	}
	testenv.Eventually(t, "the breaker is shown as open", func() bool { return open() == 1 })
	explained, err := reader.Explain(testenv.Context(t), rig.One[eventqueue.EventID](r, `SELECT max(id) FROM events_v2`))
	if err != nil {
		t.Fatal(err)
	}
	var labels []machine.Label
	for _, reason := range explained.Reasons {
		labels = append(labels, reason.Label)
	}
	if !slices.Contains(labels, machine.BreakerOpen) {
		t.Errorf("the event that waits is explained by %v", labels)
	}
	there.Store(true)
	testenv.Eventually(t, "all events have run, and the breaker is shown as closed", func() bool {
		return open() == 0 && rig.One[int](r, `SELECT count(*) FROM events_v2`) == 0
	})
}
