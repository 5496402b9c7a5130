package oracle

import "time"

// orderSlack is for what commits while a group advances.
const orderSlack = time.Second

// checkOrder is the order of a key (I2): of its events the one with the lowest id that is due goes first, whether or not its
// notification has arrived. Only the first claim of an event is judged. Its group cannot have advanced to it before it was
// due, nor before the claims of others had ended; an event of a lower id that was free and due by then should have gone
// first. Rules, refused rows, and limits above one are not judged.
func (j *judgement) checkOrder() {
	for of, lives := range j.groups() {
		if j.mostOfKey(of) > 1 {
			continue
		}
		for _, l := range lives {
			if len(l.holds) > 0 {
				j.checkTurn(l, lives)
			}
		}
	}
}

func (j *judgement) checkTurn(l *life, lives []*life) {
	first := l.holds[0].claim.At
	since := latest(l.emitted.At, l.emitted.Due)
	for _, r := range l.changes {
		if !r.Due.IsZero() && r.At.Before(first) {
			since = latest(r.At, r.Due) // which may be earlier: an operator had it tried now
		}
	}
	for _, other := range lives {
		for _, h := range other.holds {
			if h.end != nil && h.end.At.Before(first) {
				since = latest(since, h.end.At)
			}
		}
	}
	for _, other := range lives {
		if other.id < l.id && j.wasReady(other, since.Add(-orderSlack), first) {
			j.accuse(l, "I2", "it ran at %s, and event %s of its key, which has a lower id and was due, had not run", first.UTC().Format(clock), other.id)
		}
	}
}

// wasReady reports whether an event was due and free from one moment to another.
func (j *judgement) wasReady(l *life, from, to time.Time) bool {
	if l.emitted.Foreign || len(j.rulesAbout(l.emitted)) > 0 || l.emitted.At.After(from) || l.ended != nil && l.ended.At.Before(to) {
		return false
	}
	due := l.emitted.Due
	for _, r := range l.changes {
		switch {
		case r.At.After(to):
		case r.At.After(from) && r.Kind != Refused:
			return false
		case !r.Due.IsZero():
			due = r.Due
		}
	}
	for _, h := range l.holds {
		if !h.claim.At.After(to) && (h.end == nil || h.end.At.After(from)) {
			return false
		}
	}
	for i := range j.Faults {
		if f := &j.Faults[i]; f.Kind == RowRefused && f.Event == l.id {
			return false
		}
	}
	return !due.After(from)
}
