package oracle

import (
	"slices"
	"time"
)

// term is a time during which a limit did not change.
type term struct {
	from, to time.Time // to zero: to the end
	most     int
}

// terms are those of a canvas or a handler, without those in which it had no limit.
func (j *judgement) terms(of limited) (terms []term) {
	for _, c := range j.Limits {
		if c.Limit.Key != "" || c.Limit.EveryKey || (limited{c.Limit.Canvas, c.Limit.Module, c.Limit.Name}) != of {
			continue
		}
		if n := len(terms); n > 0 {
			terms[n-1].to = c.At
		}
		terms = append(terms, term{from: c.At, most: c.Limit.Max})
	}
	return slices.DeleteFunc(terms, func(t term) bool { return t.most == 0 })
}

// checkLimits holds the claims that are valid at once against the limits. Of events
// that were emitted before a limit was set, some may have had their turns before it, and
// what was written with a lock counts as begun: they do not count.
func (j *judgement) checkLimits() {
	spans := j.spansOfLimits()
	var order []limited
	for _, c := range j.Limits {
		of := limited{c.Limit.Canvas, c.Limit.Module, c.Limit.Name}
		if !slices.Contains(order, of) {
			order = append(order, of)
		}
	}
	for _, of := range order {
		for _, t := range j.terms(of) {
			var counted []span
			for _, s := range spans[of] {
				if s.of.emitted.At.After(t.from) && s.of.emitted.LockedAt.IsZero() && (t.to.IsZero() || s.from.Before(t.to)) {
					counted = append(counted, s)
				}
			}
			j.checkAtOnce(counted, t.most, "limits")
		}
	}
}

// spansOfLimits are all claims by the limits that may concern them, in order.
func (j *judgement) spansOfLimits() map[limited][]span {
	if j.limitSpans != nil || len(j.Limits) == 0 {
		return j.limitSpans
	}
	j.limitSpans = map[limited][]span{}
	for _, id := range j.order {
		l := j.lives[id]
		if l.emitted == nil {
			continue
		}
		for _, of := range limitedOf(l.emitted) {
			for _, h := range l.holds {
				j.limitSpans[of] = append(j.limitSpans[of], span{l, h.claim.lockedAt(), j.validUntil(h)})
			}
		}
	}
	for _, spans := range j.limitSpans {
		slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	}
	return j.limitSpans
}

// checkAtOnce accuses the first of the spans with which more than most were valid.
func (j *judgement) checkAtOnce(spans []span, most int, invariant string) {
	slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	for i, s := range spans {
		valid := 1
		for _, before := range spans[:i] {
			if before.of != s.of && before.to.After(s.from) {
				valid++
			}
		}
		if valid > most {
			j.accuse(s.of, invariant, "claimed at %s as the %d. at once under its concurrency limit: at most %d", s.from.UTC().Format(clock), valid, most)
			return
		}
	}
}

// busy is the last time, not after until, at which another event of the limits of an
// event was claimed: as long as others run, it may have to wait for them.
func (j *judgement) busy(l *life, until time.Time) (last time.Time) {
	for _, of := range limitedOf(l.emitted) {
		if len(j.terms(of)) == 0 {
			continue
		}
		for _, s := range j.spansOfLimits()[of] {
			if s.of != l && s.from.Before(until) {
				last = latest(last, earliest(until, s.to))
			}
		}
	}
	return last
}
