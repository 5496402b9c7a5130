package oracle

import "time"

// checkSpoilt is I15 for rows that the database refuses to write: such a row costs itself only. What a
// statement would have written beside it is written soon after.
func (j *judgement) checkSpoilt(l *life) {
	if j.Bounds.Beside == 0 || l.emitted == nil {
		return
	}
	for _, r := range l.spoilt {
		until := r.At.Add(j.Bounds.Beside)
		if until.After(j.Final.At) || l.changedWithin(r.At, until) || j.hinders(l, r, until) {
			continue
		}
		j.accuse(l, "I15", "%s could not write that it was %s, because of another event's row, and within %s nobody did",
			r.Actor, r.Meant, j.Bounds.Beside)
	}
}

func (l *life) changedWithin(from, to time.Time) bool {
	for _, r := range l.changes {
		if !r.At.Before(from) && !r.At.After(to) {
			return true
		}
	}
	return false
}

// hinders reports whether anything else could keep the writer from writing until then: a fault of its
// own, or a rule.
func (j *judgement) hinders(l *life, spoilt *Record, until time.Time) bool {
	for i := range j.Faults {
		f := &j.Faults[i]
		if f.Kind == NotifierFault || f.Kind == AnswerFault || f.Actor != "" && f.Actor != spoilt.Actor || f.Event != 0 && f.Event != l.id {
			continue
		}
		if f.overlaps(spoilt.At, until) {
			return true
		}
	}
	return spoilt.Meant == Claimed && j.heldBack(l.emitted, until).After(spoilt.At)
}
