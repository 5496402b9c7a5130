package oracle

import "time"

// checkProgress is I13: from the moment at which an event may run, and from the end of
// the last obstacle that the history knows, it takes at most Bounds.Progress until it is
// claimed, and until then the time after which a notification counts as lost.
func (j *judgement) checkProgress(l *life) {
	if j.Bounds.Progress == 0 || l.emitted == nil || l.emitted.Foreign {
		return
	}
	for _, h := range l.holds {
		j.checkWait(l, h.due, latest(h.due, h.free), h.claim.At)
	}
	if l.row != nil && !l.row.Locked {
		since := latest(l.row.Due, l.emitted.At)
		if n := len(l.holds); n > 0 && l.holds[n-1].end != nil {
			since = latest(since, l.holds[n-1].end.At)
		}
		j.checkWait(l, l.row.Due, since, j.Final.At)
	}
}

// checkWait judges a wait of an event that has been free since then. A row by hand may have been due long before it was
// there: scheduled is its delay_until, by which the relay reckons.
func (j *judgement) checkWait(l *life, scheduled, since, until time.Time) {
	due := latest(scheduled, l.emitted.At)
	if until.Sub(since) <= j.Bounds.Progress {
		return
	}
	clear, ends := j.faultless(l, since, until)
	if !ends {
		return
	}
	if clear = latest(clear, j.ahead(l, due, until)); !clear.Before(until) {
		return
	}
	since = latest(clear, j.heldBack(l.emitted, until))
	since = latest(since, j.busy(l, until))
	if waited, most := until.Sub(since), j.silence(l, scheduled, since, until)+j.Bounds.Progress; waited > most {
		j.accuse(l, "I13", "it could run and was without a claim for %s, from %s on: at most %s", waited,
			since.UTC().Format(clock), most)
	}
}

// faultless is the end of the last fault that may have kept an event from being claimed
// before until, and since at least; not ends: one never ended.
func (j *judgement) faultless(l *life, since, until time.Time) (last time.Time, ends bool) {
	for i := range j.Faults {
		f := &j.Faults[i]
		if f.Kind == AnswerFault || f.Event != 0 && f.Event != l.id || f.From.After(until) || j.Bounds.Alone && f.Kind == NotifierFault {
			continue
		}
		if f.To.IsZero() {
			return since, false
		}
		since = latest(since, f.To)
	}
	return since, true
}

// silence is how long after the last obstacle a notification may be taken for one that
// is on its way. It was published at the end of the obstacle, if that was the worst
// moment, and the relay waits as long as it has waited until then, between LostAfter and
// ten times that. Where a fault of the notifier was no obstacle, the last one may have been
// published into that fault at any time.
func (j *judgement) silence(l *life, scheduled, since, until time.Time) time.Duration {
	least, most := j.Bounds.LostAfter, 10*j.Bounds.LostAfter
	for i := range j.Faults {
		if f := &j.Faults[i]; j.Bounds.Alone && f.Kind == NotifierFault && f.overlaps(latest(scheduled, l.emitted.At), until) {
			return most
		}
	}
	return min(max(since.Sub(scheduled), least), most)
}

// ahead is when the last of those ended that may have been before an event in its
// ordering group; until, when one had not ended then. Whoever is the first of a group is
// judged for its own waiting.
func (j *judgement) ahead(l *life, due, until time.Time) (last time.Time) {
	if l.emitted.OrderingKey == "" {
		return last
	}
	for _, other := range j.groups()[groupOf(l.emitted)] {
		// The first ones go first; but one with a delay joins when it is asked for after
		// that, behind all that are there then.
		before := other.id < l.id || due.After(l.emitted.At) || !other.emitted.At.After(due)
		if other == l || !before || other.emitted.At.After(until) {
			continue
		}
		if other.ended == nil || other.ended.At.After(until) {
			return until
		}
		last = latest(last, other.ended.At)
	}
	return last
}
