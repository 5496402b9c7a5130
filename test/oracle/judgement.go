package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// judgement is one run of Check.
type judgement struct {
	*History
	lives      map[eventqueue.EventID]*life
	order      []eventqueue.EventID
	rules      ruleLives
	slots      []*Record
	left       map[string]time.Time // when processes did
	violations []Violation
	limitSpans map[limited][]span
	ordered    map[group][]*life
}

func newJudgement(h *History) *judgement {
	j := &judgement{History: h, lives: map[eventqueue.EventID]*life{}, rules: ruleLives{}, left: map[string]time.Time{}}
	for i := range h.Records {
		r := &h.Records[i]
		switch r.Kind {
		case RuleAsked, RuleAdded, LiftAsked, RuleLifted:
			j.rules.add(r)
			continue
		case SlotEmitted:
			j.slots = append(j.slots, r)
		case ProcessEnded:
			j.left[r.Actor] = r.At
			continue
		case Granted: // of a scope, and not of an event
			continue
		}
		j.life(r.Event).add(r)
	}
	for i := range h.Final.Rows {
		j.life(h.Final.Rows[i].Event).row = &h.Final.Rows[i]
	}
	for i := range h.Final.Log {
		l := j.life(h.Final.Log[i].Event)
		l.log = append(l.log, &h.Final.Log[i])
	}
	slices.Sort(j.order)
	return j
}

func (j *judgement) life(id eventqueue.EventID) *life {
	l, ok := j.lives[id]
	if !ok {
		l = &life{id: id, starts: map[int32]*Record{}, ends: map[int32]*Record{}}
		j.lives[id] = l
		j.order = append(j.order, id)
	}
	return l
}

// maxEvidence bounds the lines that a violation carries, and maxPerEvent how
// often one event is accused.
const (
	maxEvidence = 60
	maxPerEvent = 10
)

// accuse adds a violation of an event's, with the event's records, and the
// faults of those who had to do with it, as evidence.
func (j *judgement) accuse(l *life, invariant, format string, args ...any) {
	if l.accused++; l.accused > maxPerEvent {
		return
	}
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	actors := map[string]bool{"": true}
	for _, r := range l.records {
		lines = append(lines, line{r.At, r.String()})
		actors[r.Actor] = true
	}
	if len(lines) > 0 {
		first, last := l.records[0].At, l.records[len(l.records)-1].At
		for i := range j.Faults {
			if f := &j.Faults[i]; actors[f.Actor] && f.overlaps(first, last) && (f.Event == 0 || f.Event == l.id) {
				lines = append(lines, line{f.From, f.String()})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	if len(lines) > maxEvidence {
		cut := len(lines) - maxEvidence
		lines = append(lines[:maxEvidence/2:maxEvidence/2],
			append([]line{{text: fmt.Sprintf("… %d lines left out …", cut)}}, lines[cut+maxEvidence/2:]...)...)
	}
	v := Violation{Invariant: invariant, Event: l.id, Problem: fmt.Sprintf(format, args...)}
	for _, one := range lines {
		v.Evidence = append(v.Evidence, one.text)
	}
	j.violations = append(j.violations, v)
}

// validUntil is the end of a claim: its write, or its expiry.
func (j *judgement) validUntil(h *hold) time.Time {
	if h.end != nil {
		return h.end.At
	}
	timeout := h.claim.LockTimeout
	if timeout == 0 {
		timeout = j.Bounds.LockTimeout
	}
	expiry := h.lockedAt.Add(timeout)
	if h.next != nil && h.next.lockedAt().Before(expiry) {
		return h.next.lockedAt()
	}
	return expiry
}
