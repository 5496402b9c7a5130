package oracle

import (
	"eventsv2/eventqueue/machine"
)

// checkExtraRuns is I3: a claim that ended without a write, and was followed by
// another one, overlaps a fault of its holder.
func (j *judgement) checkExtraRuns(l *life) {
	for _, h := range l.holds {
		if h.end != nil || h.next == nil {
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
	failures, own, silent, snoozes := 0, 0, 0, 0
	for _, h := range l.holds {
		run, end := l.starts[h.claim.Attempt], l.ends[h.claim.Attempt]
		lost := h.end == nil && h.next != nil
		if end != nil && end.Result == Stopping && h.end != nil && isFailure(h.end.Label) {
			j.accuse(l, "I9", "the run with token %d ended because its worker was stopping, and it was counted as a failure", h.claim.Attempt)
		}
		wrong := end != nil && (end.Result == Failed || end.Result == Permanent || end.Result == Cut ||
			end.Result == Snoozed && snoozes >= leastSnoozes)
		bad := lost || h.end != nil && isFailure(h.end.Label)
		switch {
		case run != nil && lost && !h.begun:
			silent++
		case run != nil && bad:
			failures++
		}
		if lost || bad && wrong {
			own++
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
	if silent > 1 {
		j.accuse(l, "I9", "%d runs were lost without a record that they had begun: at most the first may", silent)
	}
	if allowed := most + 1 + l.freed; failures > allowed { // with its lock an operator frees it for one more run
		j.accuse(l, "I9", "%d runs failed: with %d retries at most %d may", failures, most, allowed)
	}
	if l.ended == nil || l.ended.Kind == Cancelled {
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
