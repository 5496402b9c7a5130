package eventqueue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// rates are what a worker knows of approximate limits, and what it has let run since it
// told the database last. Of a limit of which it knows nothing, or whose windows
// may be over, or that is exact, it lets nothing run: then the database is asked.
type rates struct {
	// credit is how many events may begin under a limit before the database knows of
	// them: times the number of workers, that is the most by which a window overshoots.
	credit int

	mu     sync.Mutex
	scopes map[Scope]rateScope // of approximate limits only
	views  map[Scope]*rateView // of each limit, by its scope
	ran    map[Scope]int       // begun, and not sent yet
	closed bool
	filled chan struct{} // holds a token when there may be something to tell
}

// rateScope are the limits of a handler on a canvas; nil where there is none.
type rateScope struct{ canvas, handler *rateView }

// rateView is a limit as one worker knows it.
type rateView struct {
	at   time.Time // of the answer, by the database's clock
	ends time.Time // by this machine's clock: when a window of the answer may be over
	room int64     // of the answer, less what has begun since
	// untold are the events that have begun, and are in no answer.
	untold int
}

// maxRateScopes bounds what is remembered, roughly.
const maxRateScopes = 10_000

func newRates(credit int) rates {
	return rates{credit: credit, scopes: map[Scope]rateScope{}, views: map[Scope]*rateView{}, ran: map[Scope]int{},
		filled: make(chan struct{}, 1)}
}

func (s rateScope) each(f func(*rateView)) {
	for _, v := range []*rateView{s.canvas, s.handler} {
		if v != nil {
			f(v)
		}
	}
}

// admit returns how many of n events may begin by what is known, and takes them as
// begun. The next asks tell of them; wake has that done soon.
func (r *rates) admit(scope Scope, n int, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.scopes[scope]
	if !ok {
		return 0
	}
	known.each(func(v *rateView) {
		if !now.Before(v.ends) {
			n = 0
		}
		n = max(min(n, r.credit-v.untold, int(v.room)), 0)
	})
	if n == 0 {
		return 0
	}
	known.each(func(v *rateView) {
		v.room -= int64(n)
		v.untold += n
	})
	r.ran[scope] += n
	return n
}

// asks are what to ask for some groups of events, with all that is to be told.
func (r *rates) asks(wanted []limitedGroup) []RateAsk {
	r.mu.Lock()
	defer r.mu.Unlock()
	asks := make([]RateAsk, 0, len(wanted)+len(r.ran))
	for _, group := range wanted {
		asks = append(asks, RateAsk{Scope: group.scope, Want: len(group.events), Ran: r.ran[group.scope]})
		delete(r.ran, group.scope)
	}
	told := len(asks)
	for scope, n := range r.ran {
		asks = append(asks, RateAsk{Scope: scope, Ran: n})
	}
	slices.SortFunc(asks[told:], func(a, b RateAsk) int { return compareScopes(a.Scope, b.Scope) }) // runs can be repeated
	clear(r.ran)
	return asks
}

func compareScopes(a, b Scope) int {
	return cmp.Or(slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
}

// unanswered takes back what could not be told, or of which nobody knows whether it
// was: rather counted twice than not at all.
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

// learn takes in answers to what was sent at a time.
func (r *rates) learn(asks []RateAsk, answers []RateAnswer, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, ask := range asks { // all of them before any room is reckoned
		if answers[i].Busy {
			r.takeBack(ask)
			continue
		}
		for _, limit := range []Scope{{Canvas: ask.Canvas}, ask.Scope} {
			if v := r.views[limit]; v != nil {
				v.untold = max(v.untold-ask.Ran, 0)
			}
		}
	}
	for i, ask := range asks {
		if answers[i].Busy {
			continue
		}
		if !answers[i].approximate() {
			delete(r.scopes, ask.Scope)
			continue
		}
		r.makeRoom()
		r.scopes[ask.Scope] = rateScope{
			canvas:  r.view(Scope{Canvas: ask.Canvas}, answers[i].Canvas, answers[i].At, sent),
			handler: r.view(ask.Scope, answers[i].Handler, answers[i].At, sent),
		}
	}
}

// approximate tells whether a worker may decide about the scope by itself.
func (a *RateAnswer) approximate() bool {
	some := false
	for _, s := range []*RateState{a.Canvas, a.Handler} {
		if s != nil && s.Mode != RateApproximate {
			return false
		}
		some = some || s != nil
	}
	return some
}

// view is what is known of a limit with an answer, unless that is older than another.
func (r *rates) view(limit Scope, s *RateState, at, sent time.Time) *rateView {
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
	v.at, v.ends, v.room = at, sent.Add(left), s.Room()-int64(v.untold)
	return v
}

// makeRoom forgets what costs nothing to be asked again when there is much.
func (r *rates) makeRoom() {
	if len(r.scopes) < maxRateScopes {
		return
	}
	for scope, known := range r.scopes {
		told := true
		known.each(func(v *rateView) { told = told && v.untold == 0 })
		if told {
			delete(r.scopes, scope)
		}
	}
	for limit, v := range r.views {
		if v.untold == 0 {
			delete(r.views, limit)
		}
	}
}

// wake has what there is to tell told soon.
func (r *rates) wake() {
	select {
	case r.filled <- struct{}{}:
	default:
	}
}

// close says that nothing more begins.
func (r *rates) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake()
}

// wait blocks until there may be something to tell, and tells so; it tells false when
// ctx has ended, or all has been told and nothing more begins.
func (r *rates) wait(ctx context.Context) bool {
	r.mu.Lock()
	there, closed := len(r.ran) > 0, r.closed
	r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return false
	case there:
		return true
	case closed:
		return false
	}
	select {
	case <-r.filled:
		return true
	case <-ctx.Done():
		return false
	}
}
