package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/ratelimit"
)

// rates holds the approximate limits known to a worker, and the runs since its last report
// to the database. Under a limit that it does not know, whose windows may be over, or that is
// exact, it lets nothing run: then the database is asked.
type rates struct {
	// credit is how many events may begin under a limit before the database knows of them.
	// Multiplied by the number of workers it is the most by which a window overshoots.
	credit int

	mu     sync.Mutex
	scopes map[eventqueue.Scope]rateScope // of approximate limits only
	views  map[eventqueue.Scope]*rateView // of each limit, by its scope
	ran    map[eventqueue.Scope]int       // begun, and not reported yet
	closed bool
	filled chan struct{} // holds a token when there may be something to report
}

// rateScope are the limits of a handler on a canvas; nil where there is none.
type rateScope struct{ canvas, handler *rateView }

// rateView is a limit as one worker knows it.
type rateView struct {
	at         time.Time // of the answer, by the database's clock
	windowEnds time.Time // by this machine's clock: when the first window of the answer may be over
	room       int64     // of the answer, less what has begun since
	// unreported are the events that have begun, and are in no answer.
	unreported int
}

// maxRateScopes bounds the number of scopes, roughly.
const maxRateScopes = 10_000

func newRates(credit int) rates {
	return rates{credit: credit, scopes: map[eventqueue.Scope]rateScope{}, views: map[eventqueue.Scope]*rateView{}, ran: map[eventqueue.Scope]int{},
		filled: make(chan struct{}, 1)}
}

func (s rateScope) each(f func(*rateView)) {
	for _, v := range []*rateView{s.canvas, s.handler} {
		if v != nil {
			f(v)
		}
	}
}

// admit returns how many of n events may begin by what is known, and counts them as begun. The next
// asks report them; wake has that done soon.
func (r *rates) admit(scope eventqueue.Scope, n int, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.scopes[scope]
	if !ok {
		return 0
	}
	known.each(func(v *rateView) {
		if !now.Before(v.windowEnds) {
			n = 0
		}
		n = max(min(n, r.credit-v.unreported, int(v.room)), 0)
	})
	if n == 0 {
		return 0
	}
	known.each(func(v *rateView) {
		v.room -= int64(n)
		v.unreported += n
	})
	r.ran[scope] += n
	return n
}

// asks returns what to ask for some groups of events, and everything that is still to be reported.
func (r *rates) asks(wanted []limitedGroup) []RateAsk {
	r.mu.Lock()
	defer r.mu.Unlock()
	asks := make([]RateAsk, 0, len(wanted)+len(r.ran))
	for _, group := range wanted {
		asks = append(asks, group.ask(r.ran[group.scope]))
		delete(r.ran, group.scope)
	}
	first := len(asks)
	for scope, n := range r.ran {
		asks = append(asks, RateAsk{Scope: scope, Ran: n})
	}
	slices.SortFunc(asks[first:], func(a, b RateAsk) int { return compareScopes(a.Scope, b.Scope) }) // runs can be repeated
	clear(r.ran)
	return asks
}

func compareScopes(a, b eventqueue.Scope) int {
	return cmp.Or(slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
}

// unanswered takes back counts that were not reported, or perhaps not: better counted twice than
// not at all.
func (r *rates) unanswered(asks []RateAsk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ask := range asks {
		r.takeBack(ask)
	}
}

func (r *rates) takeBack(ask RateAsk) {
	if ask.Ran > 0 {
		r.ran[ask.Scope] += ask.Ran
		r.wake()
	}
}

// learn applies the answers to asks that were sent at a time.
func (r *rates) learn(asks []RateAsk, answers []ratelimit.Answer, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, ask := range asks { // all of them before any room is computed
		if answers[i].Busy {
			r.takeBack(ask)
			continue
		}
		for _, limit := range []eventqueue.Scope{{Canvas: ask.Canvas}, ask.Scope} {
			if v := r.views[limit]; v != nil {
				v.unreported = max(v.unreported-ask.Ran, 0)
			}
		}
	}
	for i, ask := range asks {
		if answers[i].Busy {
			continue
		}
		if !answers[i].Approximate() {
			delete(r.scopes, ask.Scope)
			continue
		}
		r.makeRoom()
		r.scopes[ask.Scope] = rateScope{
			canvas:  r.view(eventqueue.Scope{Canvas: ask.Canvas}, answers[i].Canvas, answers[i].At, sent),
			handler: r.view(ask.Scope, answers[i].Handler, answers[i].At, sent),
		}
	}
}

// view returns the view of a limit, updated by an answer unless that is older than another.
func (r *rates) view(limit eventqueue.Scope, s *ratelimit.State, at, sent time.Time) *rateView {
	if s == nil {
		return nil
	}
	v := r.views[limit]
	if v == nil {
		v = &rateView{}
		r.views[limit] = v
	}
	if v.at.After(at) {
		return v
	}
	left := s.DayLeft
	if s.PerMinute > 0 {
		left = s.MinuteLeft
	}
	v.at, v.windowEnds, v.room = at, sent.Add(left), s.Room()-int64(v.unreported)
	if s.Waiting > 0 { // whose turn it is, the database knows
		v.room = 0
	}
	return v
}

// makeRoom deletes scopes and views without unreported events when there are too many: asking again
// costs nothing.
func (r *rates) makeRoom() {
	if len(r.scopes) < maxRateScopes {
		return
	}
	for scope, known := range r.scopes {
		reported := true
		known.each(func(v *rateView) { reported = reported && v.unreported == 0 })
		if reported {
			delete(r.scopes, scope)
		}
	}
	for limit, v := range r.views {
		if v.unreported == 0 {
			delete(r.views, limit)
		}
	}
}

// wake has the counts reported soon.
func (r *rates) wake() {
	select {
	case r.filled <- struct{}{}:
	default:
	}
}

// close says that no more events begin.
func (r *rates) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake()
}

// wait blocks until there may be something to report, and returns true then. It returns false when
// ctx has ended, or everything is reported and no more events begin. What a claim has let run and
// is about to ask about is reported with its question: only wake asks for a statement of its own.
func (r *rates) wait(ctx context.Context) bool {
	r.mu.Lock()
	there, closed := len(r.ran) > 0, r.closed
	r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return false
	case closed:
		return there
	}
	select {
	case <-r.filled:
		return true
	case <-ctx.Done():
		return false
	}
}
