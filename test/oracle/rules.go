package oracle

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// checkRules is I7. A claim at the very moment at which an add returns may have
// come first.
func (j *judgement) checkRules(l *life) {
	if l.emitted == nil {
		return
	}
	for _, f := range j.forcesOf(l.emitted) {
		for _, h := range l.holds {
			if at := h.claim.At; f.has(at) {
				j.accuse(l, "I7", "claimed at %s, after a rule for its handler had been added by %s", at.UTC().Format(clock),
					f.from.UTC().Format(clock))
			}
		}
	}
}

// rulesAbout returns the rules that are about an event, in a fixed order.
func (j *judgement) rulesAbout(emitted *Record) []*ruleLife {
	var keys []ruleKey
	for key := range j.rules {
		if key.about().Matches(emitted.Canvas, emitted.Handler) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareRules)
	lives := make([]*ruleLife, len(keys))
	for i, key := range keys {
		lives[i] = j.rules[key]
	}
	return lives
}

func compareRules(a, b ruleKey) int { return cmp.Compare(a.String(), b.String()) }

// forcesOf returns when rules held an event back.
func (j *judgement) forcesOf(emitted *Record) []force {
	var forces []force
	for _, known := range j.rulesAbout(emitted) {
		forces = append(forces, known.forces()...)
	}
	return forces
}

// lifts counts how often it was tried to lift a rule that is about an event.
func (j *judgement) lifts(emitted *Record) int {
	n := 0
	for _, known := range j.rulesAbout(emitted) {
		n += len(known.lifts)
	}
	return n
}

// heldBack returns the last time, not after until, at which a rule may have held an event
// back.
func (j *judgement) heldBack(emitted *Record, until time.Time) time.Time {
	var last time.Time
	for _, known := range j.rulesAbout(emitted) {
		for _, add := range known.adds {
			if add.asked.At.After(until) {
				continue
			}
			last = latest(last, earliest(until, known.gone(add)))
		}
	}
	return last
}

// checkRepeats is I14: of two calls in a row that want the same, the second one
// changes nothing; and the table says so at the end.
func (j *judgement) checkRepeats() {
	keys := slices.SortedFunc(maps.Keys(j.rules), compareRules)
	for _, key := range keys {
		l := j.rules[key]
		j.checkRepeated(key, l.adds, l.lifts)
		j.checkRepeated(key, l.lifts, l.adds)
		j.checkLast(key, l)
	}
}

// checkRepeated looks for two calls that both changed something, with none of
// the opposite kind that can have come between.
func (j *judgement) checkRepeated(key ruleKey, calls, opposite []*ruleCall) {
	for i, first := range calls {
		for _, second := range calls[i+1:] {
			if first.returned == nil || second.returned == nil || !first.returned.Changed || !second.returned.Changed {
				continue
			}
			between := slices.ContainsFunc(opposite, func(o *ruleCall) bool {
				return !o.asked.At.After(second.returned.At) && (o.returned == nil || !o.returned.At.Before(first.asked.At))
			})
			if !between {
				j.accuse(&life{records: []*Record{first.asked, first.returned, second.asked, second.returned}}, "I14",
					"%s: two calls of the same kind both changed something", key)
			}
		}
	}
}

// checkLast holds the table against the last call, where it is clear which one
// that was.
func (j *judgement) checkLast(key ruleKey, l *ruleLife) {
	calls := slices.Concat(l.adds, l.lifts)
	for i, call := range calls {
		if call.returned == nil {
			continue
		}
		last := !slices.ContainsFunc(calls, func(o *ruleCall) bool {
			return o != call && (o.returned == nil || !o.returned.At.Before(call.asked.At))
		})
		there := slices.Contains(j.Final.Rules, RuleRow{key.rule, key.scope, key.width})
		if last && there != (i < len(l.adds)) {
			j.accuse(&life{records: []*Record{call.asked, call.returned}}, "I14",
				"%s: the last call was this one, and the table says otherwise", key)
		}
	}
}
