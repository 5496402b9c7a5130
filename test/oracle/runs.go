package oracle

import (
	"time"

	"eventsv2/eventqueue/machine"
)

// checkExtraRuns is I3: a claim that ended without a write, and was followed by
// another one, overlaps a fault of its holder.
func (j *judgement) checkExtraRuns(l *life) {
	for _, h := range l.holds {
		if l.asked != nil && h.claim.At.After(l.asked.At) && l.starts[h.claim.Attempt] != nil {
			j.accuse(l, "I3", "a run began with token %d, though an operator had cancelled it before that claim", h.claim.Attempt)
		}
		// A run that was to end may lose its lock: whoever takes that over ends the event.
		if h.end != nil || h.next == nil || l.asked != nil && h.next.At.After(l.asked.At) {
			continue
		}
		if !j.excused(l, h) {
			j.accuse(l, "I3", "token %d of %s was taken over, and %s had no fault between %s and %s",
				h.claim.Attempt, h.claim.Actor, h.claim.Actor, h.claim.At.UTC().Format(clock), h.next.At.UTC().Format(clock))
		}
	}
}

func (j *judgement) excused(l *life, h *hold) bool {
	for i := range j.Faults {
		f := &j.Faults[i]
		if f.Kind == NotifierFault || f.Kind == AnswerFault || f.Kind == Stopped {
			continue
		}
		if (f.Actor == "" || f.Actor == h.claim.Actor) && (f.Event == 0 || f.Event == l.id) &&
			f.overlaps(h.claim.lockedAt(), h.next.lockedAt()) {
			return true
		}
	}
	return false
}

// checkFailures is the bound of I9, and I15: an event is FAILED for its own
// failed runs.
func (j *judgement) checkFailures(l *life) {
	if l.emitted == nil {
		return
	}
	least, most := j.Bounds.maxRetries(l.emitted.Handler)
	leastSnoozes, mostSnoozes := j.Bounds.snoozes(l.emitted.Handler)
	failures, own, silent, snoozes, free := 0, 0, 0, 0, 0
	for _, h := range l.holds {
		run, end := l.starts[h.claim.Attempt], l.ends[h.claim.Attempt]
		lost := h.end == nil && h.next != nil
		if end != nil && end.Result == Stopping && h.end != nil && isFailure(h.end.Label) {
			j.accuse(l, "I9", "the run with token %d ended because its worker was stopping, and it was counted as a failure", h.claim.Attempt)
		}
		wrong := end != nil && (end.Result == Failed || end.Result == Permanent || end.Result == Cut ||
			end.Result == Snoozed && snoozes >= leastSnoozes)
		bad := h.charged || h.end != nil && isFailure(h.end.Label)
		switch {
		case run != nil && lost && !h.begun:
			if silent++; silent > 1 {
				j.accuse(l, "I9", "%d runs in a row were lost without a record that they had begun: at most the first may", silent)
			}
		case run != nil && bad:
			failures++
		}
		if h.charged || bad && wrong {
			own++
		}
		switch {
		case lost && h.begun && !h.charged:
			if free++; free > mostFree {
				j.accuse(l, "I9", "%d runs in a row were lost and used no attempt: at most %d may", free, mostFree)
			}
		case h.end != nil && h.end.Label != machine.Released && h.end.Label != machine.OverLimit:
			free, silent = 0, 0
		}
		switch {
		case h.end == nil:
		case h.end.Label == machine.RetryAllowed:
			snoozes = 0
		case h.end.Label == machine.Snoozed:
			if snoozes++; snoozes > mostSnoozes {
				j.accuse(l, "I9", "it was snoozed %d times in a row: at most %d", snoozes, mostSnoozes)
			}
		}
	}
	if allowed := most + 1 + l.freed; failures > allowed { // with its lock an operator frees it for one more run
		j.accuse(l, "I9", "%d runs failed: with %d retries at most %d may", failures, most, allowed)
	}
	if l.ended == nil || l.ended.Kind == Cancelled || l.ended.Label == machine.Cancelled {
		return
	}
	if l.ended.Label != machine.ExecutesToCompletion && len(l.starts) == 0 {
		j.checkUndelivered(l)
	}
	switch end := l.ends[l.ended.Attempt]; l.ended.Label {
	case machine.FailedForGood:
		if end == nil || end.Result != Permanent {
			j.accuse(l, "I15", "it failed for good, and its handler had not asked for that")
		}
	case machine.RetryTooMany:
		own += l.emitted.Retries // which somebody has written
		if own < least+1 {
			j.accuse(l, "I15", "it is FAILED after %d runs of its own that failed: it may be tried %d times", own, least+1)
		}
	}
}

// mostFree is how many runs of an event may be lost in a row before the first one uses an attempt: the first, and
// those with less and less company.
const mostFree = 11

// checkCompany is I15: what uses an attempt because its worker died was the only suspect there.
func (j *judgement) checkCompany() {
	type apart struct {
		of   *life
		h    *hold
		from time.Time
		to   time.Time
	}
	byActor := map[string][]apart{}
	for _, id := range j.order {
		l := j.lives[id]
		for _, h := range l.holds {
			if h.together > 0 {
				byActor[h.claim.Actor] = append(byActor[h.claim.Actor], apart{l, h, h.begins, j.endOfRun(l, h)})
			}
		}
	}
	for actor, runs := range byActor {
		for _, a := range runs {
			if !a.h.charged {
				continue
			}
			for _, b := range runs {
				if b.h != a.h && b.from.Before(a.to) && a.from.Before(b.to) {
					j.accuse(a.of, "I15", "token %d used an attempt when %s died, and the suspect %s ran beside it", a.h.claim.Attempt, actor, b.of.id)
				}
			}
		}
	}
}

// takenForLost is how long after locked_at a worker may take a claim for lost. It may do so an eighth early, since the
// database writes locked_at after it was asked to.
func takenForLost(timeout time.Duration) time.Duration { return timeout * 7 / 8 }

// endOfRun is when the run of a claim was over, at the latest.
func (j *judgement) endOfRun(l *life, h *hold) time.Time {
	// Then its worker took it for lost, and for no company of others: also if a renewal, or its end, came through after that.
	to := earliest(j.Final.At, h.lockedAt.Add(takenForLost(j.Bounds.LockTimeout)))
	if !h.gaveUp.IsZero() {
		to = earliest(to, h.gaveUp)
	}
	if h.next != nil {
		to = earliest(to, h.next.At)
	}
	if h.end != nil {
		to = earliest(to, h.end.At)
	}
	if end := l.ends[h.claim.Attempt]; end != nil {
		to = earliest(to, end.At)
	}
	for i := range j.Faults {
		if f := &j.Faults[i]; f.Kind == Killed && (f.Actor == "" || f.Actor == h.claim.Actor) && !f.From.Before(h.claim.At) {
			to = earliest(to, f.From)
		}
	}
	return to
}

// checkUndelivered is I18: an event is FAILED that no handler was ever called for. Then
// each of its claimants died, or hung, before it could give it back.
func (j *judgement) checkUndelivered(l *life) {
	lost := false
	for _, h := range l.holds {
		lost = lost || h.end == nil && h.next != nil
		if h.end == nil && h.next != nil && !j.died(h) {
			j.accuse(l, "I18", "it is FAILED, no handler was ever called for it, and %s, which held token %d, lived", h.claim.Actor, h.claim.Attempt)
		}
	}
	if !lost {
		j.accuse(l, "I18", "it is FAILED, no handler was ever called for it, and no claim of it was lost")
	}
}

// died reports whether a claimant was killed or stood still while it held its claim, or was cut off from
// the database for a whole lock timeout after it had recorded that the run begins: perhaps it was not told.
func (j *judgement) died(h *hold) bool {
	for i := range j.Faults {
		f := &j.Faults[i]
		if f.Kind == LostDatabase && h.begun && (f.Actor == "" || f.Actor == h.claim.Actor) {
			to := h.next.lockedAt()
			if !f.To.IsZero() {
				to = earliest(f.To, to)
			}
			if to.Sub(latest(f.From, h.claim.lockedAt())) >= j.Bounds.LockTimeout {
				return true
			}
		}
		if (f.Kind == Killed || f.Kind == Frozen) && (f.Actor == "" || f.Actor == h.claim.Actor) && f.overlaps(h.claim.lockedAt(), h.next.lockedAt()) {
			return true
		}
	}
	return false
}

func isFailure(label machine.Label) bool {
	return label == machine.RetryAllowed || label == machine.RetryTooMany || label == machine.FailedForGood
}
