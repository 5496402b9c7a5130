package oracle

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
)

// rateTerm is a time during which a rate limit did not change.
type rateTerm struct {
	from, to time.Time // to zero: to the end
	limit    operate.RateLimit
}

func (t *rateTerm) has(at time.Time) bool {
	return !at.Before(t.from) && (t.to.IsZero() || at.Before(t.to))
}

// rateTerms are those of all limits, by scope, without those in which there was none.
func (j *judgement) rateTerms() map[eventqueue.Scope][]rateTerm {
	terms := map[eventqueue.Scope][]rateTerm{}
	for _, c := range j.Rates {
		of := terms[c.Limit.Scope]
		if n := len(of); n > 0 && of[n-1].to.IsZero() {
			of[n-1].to = c.At
		}
		if c.Limit.PerMinute > 0 || c.Limit.PerDay > 0 {
			of = append(of, rateTerm{from: c.At, limit: c.Limit})
		}
		terms[c.Limit.Scope] = of
	}
	return terms
}

// checkRates walks over grants and runs in the order in which they happened.
func (j *judgement) checkRates() {
	if len(j.Rates) == 0 {
		return
	}
	w := rateWalk{judgement: j, terms: j.rateTerms(), windows: map[rateWindow]int{}, budgets: map[rateBudget]int{}, untold: map[rateBudget]int{}}
	for i := range j.Records {
		switch r := &j.Records[i]; r.Kind {
		case Granted:
			w.granted(r)
		case RunStarted:
			w.started(r)
		}
	}
}

// rateWalk is what was granted and has begun so far.
type rateWalk struct {
	*judgement
	terms   map[eventqueue.Scope][]rateTerm
	windows map[rateWindow]int
	budgets map[rateBudget]int // granted, and not begun
	untold  map[rateBudget]int // begun, and not told
}

// rateWindow is a window of the limits of a scope.
type rateWindow struct {
	scope eventqueue.Scope
	lasts time.Duration
	from  int64 // Unix seconds
}

type rateBudget struct {
	actor string
	scope eventqueue.Scope
}

// limitsAt are the limits that the events of a handler's scope have at a time.
func (w *rateWalk) limitsAt(scope eventqueue.Scope, at time.Time) (limits []*rateTerm) {
	for _, of := range []eventqueue.Scope{scope, {Canvas: scope.Canvas}} {
		terms := w.terms[of]
		for i := range terms {
			if terms[i].has(at) {
				limits = append(limits, &terms[i])
			}
		}
	}
	return limits
}

func (w *rateWalk) granted(r *Record) {
	of := rateBudget{r.Actor, r.Scope}
	w.budgets[of] += r.Granted
	w.untold[of] -= r.Granted + r.Ran
	for _, t := range w.limitsAt(r.Scope, r.At) {
		for _, lasts := range []time.Duration{time.Minute, 24 * time.Hour} {
			from := r.At.UTC().Truncate(lasts)
			key := rateWindow{t.limit.Scope, lasts, from.Unix()}
			w.windows[key] += r.Granted
			if most := w.mostIn(t.limit.Scope, from, r.At, lasts); most > 0 && w.windows[key] > most {
				w.accuse(&life{records: []*Record{r}}, "rates", "%d were granted in the window of %s from %s on: at most %d",
					w.windows[key], lasts, from.Format(clock), most)
			}
		}
	}
}

// mostIn is the highest limit that a scope has had from the beginning of a window until a time in it, or 0 if one of them was none for such
// windows. However often the limit was changed meanwhile, or removed and set again, no more may have been granted.
func (w *rateWalk) mostIn(scope eventqueue.Scope, from, until time.Time, lasts time.Duration) (most int) {
	for _, t := range w.terms[scope] {
		if t.from.After(until) || !t.to.IsZero() && t.to.Before(from) {
			continue
		}
		of := t.limit.PerDay
		if lasts == time.Minute {
			of = t.limit.PerMinute
		}
		if of == 0 {
			return 0
		}
		most = max(most, of)
	}
	return most
}

// started is a run that began. What held when it was claimed counts: from then on its
// worker knows of a limit.
func (w *rateWalk) started(r *Record) {
	l := w.lives[r.Event]
	if l == nil || l.emitted == nil {
		return
	}
	var claim *Record
	for _, h := range l.holds {
		if h.claim.Attempt == r.Attempt {
			claim = h.claim
		}
	}
	if claim == nil {
		return
	}
	scope := scopeOf(l.emitted)
	limits := w.limitsAt(scope, claim.At)
	if len(limits) == 0 {
		return
	}
	of := rateBudget{r.Actor, scope}
	w.untold[of]++
	exact := false
	for _, t := range limits {
		exact = exact || t.limit.Mode == ratelimit.Exact
	}
	switch {
	case exact:
		if w.budgets[of]--; w.budgets[of] < 0 {
			w.accuse(l, "rates", "its run with token %d began, and %s had not been granted it", r.Attempt, r.Actor)
		}
	case w.untold[of] > w.Bounds.Untold:
		w.accuse(l, "rates", "its run with token %d is the %d. that %s let begin and did not tell of: at most %d", r.Attempt, w.untold[of], r.Actor, w.Bounds.Untold)
	}
}
