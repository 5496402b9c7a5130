package oracle

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// checkUnique holds the events of each unique key against each other, and what was
// taken for a repeat against the event that it is said to repeat.
func (j *judgement) checkUnique() {
	byKey := map[eventqueue.UniqueKey][]*life{}
	var order []eventqueue.UniqueKey
	for _, id := range j.order {
		l := j.lives[id]
		for _, r := range l.repeats {
			j.checkRepeat(l, r)
		}
		if l.emitted == nil || l.emitted.UniqueKey == "" {
			continue
		}
		key := eventqueue.UniqueKey{Canvas: l.emitted.Canvas, Key: l.emitted.UniqueKey}
		if byKey[key] == nil {
			order = append(order, key)
		}
		byKey[key] = append(byKey[key], l)
	}
	for _, key := range order {
		events := byKey[key]
		slices.SortFunc(events, func(a, b *life) int { return a.emitted.At.Compare(b.emitted.At) })
		for i, l := range events[1:] {
			before := events[i]
			if until, ended := before.keyHolds(false); !ended || l.emitted.At.Before(until) {
				j.accuse(l, "unique", "emitted with the key %q, which event %s still had", key.Key, before.id)
			}
		}
	}
}

// checkRepeat looks at an emit that made nothing, because an event had its key.
func (j *judgement) checkRepeat(l *life, r *Record) {
	if l.emitted == nil || l.emitted.UniqueKey != r.UniqueKey || l.emitted.Canvas != r.Canvas {
		j.accuse(l, "unique", "an emit with the key %q was taken for a repeat of it, and it never had that key", r.UniqueKey)
		return
	}
	if until, ended := l.keyHolds(true); ended && r.At.After(until) {
		j.accuse(l, "unique", "an emit at %s was taken for a repeat of it, and its key held until %s", r.At.UTC().Format(clock), until.UTC().Format(clock))
	}
}

// keyHolds is until when the key of an event holds, at least, or at most; not ended: to
// the end. What ended in a transaction of the handler's counts from some moment in it,
// and the database counts whole seconds.
func (l *life) keyHolds(most bool) (until time.Time, ended bool) {
	switch {
	case l.ended == nil:
		return time.Time{}, false
	case most:
		return l.ended.At.Add((l.emitted.UniqueFor + time.Second - 1).Truncate(time.Second)), true
	case l.ended.InTx:
		return l.ended.At, true
	default:
		return l.ended.At.Add(l.emitted.UniqueFor), true
	}
}
