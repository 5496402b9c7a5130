package oracle

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/keymode"
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
		if l.emitted == nil || l.emitted.UniqueKey == "" || whileWaiting(l.emitted) {
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
	if whileWaiting(r) { // see checkModes
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

// whileWaiting reports whether the key of an emit stands for an event as long as that waits, and no longer.
func whileWaiting(r *Record) bool {
	return r.UniqueMode == keymode.UntilStart || r.UniqueMode == keymode.Replace
}

// checkModes holds the emits with a key that stands for an event only while that waits against the events. One that made an
// event came when the last one with the key did not wait: it ran, its lock had expired, or it had ended. One that made none came when
// that waited, and it went on waiting until the commit: so its run sees what was committed with the emit.
func (j *judgement) checkModes() {
	last := map[eventqueue.UniqueKey]*life{}
	for i := range j.Records {
		r := &j.Records[i]
		if !whileWaiting(r) {
			continue
		}
		key, l := eventqueue.UniqueKey{Canvas: r.Canvas, Key: r.UniqueKey}, j.lives[r.Event]
		switch before := last[key]; {
		case r.Kind == Emitted:
			if before != nil && before.waits(r.KeyTaken) {
				j.accuse(l, "unique", "emitted with the key %q while event %s waited with it", key.Key, before.id)
			}
			last[key] = l
		case before != l:
			j.accuse(l, "unique", "an emit with the key %q was taken for a repeat of it, and it did not have that key any more", key.Key)
		case !l.waits(r.At), l.claimedWithin(r):
			j.accuse(l, "unique", "an emit at %s with the key %q was taken for a repeat of it, and it did not wait until that had committed", r.At.UTC().Format(clock), key.Key)
		}
	}
}

// waits reports whether an event waited at a moment: it was there, and nobody had it locked.
func (l *life) waits(at time.Time) bool {
	waits := !l.emitted.KeyTaken.After(at)
	for _, r := range l.changes {
		if r.At.After(at) {
			break
		}
		switch r.Kind {
		case Claimed, Cancelled:
			waits = false
		case Written:
			waits = r != l.ended
		case TakenBack, Changed:
			waits = true
		}
	}
	return waits
}

// claimedWithin reports whether an event was claimed between the statement of an emit and its commit.
func (l *life) claimedWithin(emit *Record) bool {
	return slices.ContainsFunc(l.records[:slices.Index(l.records, emit)], func(r *Record) bool {
		return r.Kind == Claimed && r.At.After(emit.At)
	})
}
