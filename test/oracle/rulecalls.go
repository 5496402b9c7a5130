package oracle

import (
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// ruleKey is one row that scheduling_rules may have.
type ruleKey struct {
	rule  operate.RuleType
	scope eventqueue.Scope
	width Width
}

func (k ruleKey) String() string { return fmt.Sprintf("%s of %s", k.rule, k.about()) }

func (k ruleKey) about() operate.RuleScope {
	return operate.RuleScope{Scope: k.scope, Prefix: k.width.Prefix, Modifier: k.width.Modifier}
}

// ruleCall is one call that adds or lifts a rule.
type ruleCall struct {
	asked    *Record
	returned *Record // nil: it failed, and may have happened at any time since
}

// ruleLife is all that was done to one rule. Of a lift at a rate it is not known when it has come to an event:
// it is recorded as a call that has not returned.
type ruleLife struct {
	adds, lifts []*ruleCall
	open        map[int64]*ruleCall
}

// ruleLives is what was done to each rule.
type ruleLives map[ruleKey]*ruleLife

func (lives ruleLives) add(r *Record) {
	key := ruleKey{r.Rule, r.Scope, r.Width}
	l := lives[key]
	if l == nil {
		l = &ruleLife{open: map[int64]*ruleCall{}}
		lives[key] = l
	}
	switch r.Kind {
	case RuleAsked:
		l.open[r.Call] = &ruleCall{asked: r}
		l.adds = append(l.adds, l.open[r.Call])
	case LiftAsked:
		l.open[r.Call] = &ruleCall{asked: r}
		l.lifts = append(l.lifts, l.open[r.Call])
	default:
		if call := l.open[r.Call]; call != nil {
			call.returned = r
		}
	}
}

// force is a time during which a rule was certainly in force.
type force struct {
	from time.Time
	to   time.Time // zero: to the end
}

// has reports whether the rule was certainly in force at a time.
func (f *force) has(at time.Time) bool {
	return at.After(f.from) && (f.to.IsZero() || at.Before(f.to))
}

// forces returns when a rule was certainly in force: from the return of an add
// to the first request to lift it that may have come after the add.
func (l *ruleLife) forces() []force {
	var forces []force
	for _, add := range l.adds {
		if add.returned == nil {
			continue
		}
		f := force{from: add.returned.At}
		for _, lift := range l.lifts {
			before := lift.returned != nil && lift.returned.At.Before(add.asked.At)
			if !before && (f.to.IsZero() || lift.asked.At.Before(f.to)) {
				f.to = lift.asked.At
			}
		}
		if f.to.IsZero() || f.to.After(f.from) {
			forces = append(forces, f)
		}
	}
	return forces
}

// gone is when a rule was certainly gone after an add.
func (l *ruleLife) gone(add *ruleCall) time.Time {
	var gone time.Time
	for _, lift := range l.lifts {
		// Only a lift that began after the add had returned certainly removed it.
		after := lift.returned != nil && add.returned != nil && !lift.asked.At.Before(add.returned.At)
		if after && (gone.IsZero() || lift.returned.At.Before(gone)) {
			gone = lift.returned.At
		}
	}
	if gone.IsZero() {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return gone
}
