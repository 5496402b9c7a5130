package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
)

// Violation is a promise that was broken.
type Violation struct {
	Invariant string // such as I5
	Event     eventqueue.EventID
	Problem   string
	// Evidence are the records and faults from which it follows, one per line.
	Evidence []string
}

// String shows the violation with its evidence, on several lines.
func (v Violation) String() string {
	var b strings.Builder
	b.WriteString(v.Invariant)
	if v.Event != 0 {
		fmt.Fprintf(&b, " event %s", v.Event)
	}
	fmt.Fprintf(&b, ": %s", v.Problem)
	for _, line := range v.Evidence {
		b.WriteString("\n    ")
		b.WriteString(line)
	}
	return b.String()
}

// Check returns the violations in a history, those of an event together and at
// most ten of each, and nil when there is none. It only reads the history.
func Check(h *History) []Violation {
	j := newJudgement(h)
	for _, id := range j.order { // all of them first: one event may have to wait for others
		j.replay(j.lives[id])
	}
	for _, id := range j.order {
		l := j.lives[id]
		j.checkEnd(l)
		j.checkBytes(l)
		j.checkExtraRuns(l)
		j.checkFailures(l)
		j.checkRules(l)
		j.checkAmplification(l)
		j.checkProgress(l)
	}
	j.checkGroups()
	j.checkLimits()
	j.checkUnique()
	j.checkChains()
	j.checkRates()
	j.checkRepeats()
	j.checkCrons()
	return j.violations
}

// judgement is one run of Judge.
type judgement struct {
	*History
	lives      map[eventqueue.EventID]*life
	order      []eventqueue.EventID
	rules      map[ruleKey]*ruleLife
	slots      []*Record
	violations []Violation
	limitSpans map[limited][]span
}

// life is all that is known of one event.
type life struct {
	id      eventqueue.EventID
	records []*Record

	emitted   *Record
	repeats   []*Record // emits that were refused because of its key
	changes   []*Record // Claimed, Renewed, Written, Refused, TakenBack and MadeDue, in order
	starts    map[int32]*Record
	ends      map[int32]*Record
	logged    []*Record
	published []*Record
	delivered []*Record
	row       *Row
	accused   int // how often
	log       []*LogRow

	// Made by replay:
	holds []*hold
	ended *Record // the write that deleted the row
}

// hold is one claim and what became of it.
type hold struct {
	claim *Record
	// lockedAt moves with renewals.
	lockedAt time.Time
	// begun: it was recorded that its run had begun, as every renewal does.
	begun bool
	end   *Record // the accepted write, or nil
	next  *Record // the claim that followed, or nil
	// due is the row's delay_until when it was claimed, and free since when it
	// had been unlocked.
	due, free time.Time
}

func newJudgement(h *History) *judgement {
	j := &judgement{History: h, lives: map[eventqueue.EventID]*life{}, rules: map[ruleKey]*ruleLife{}}
	for i := range h.Records {
		r := &h.Records[i]
		switch r.Kind {
		case RuleAsked, RuleAdded, LiftAsked, RuleLifted:
			j.addRule(r)
			continue
		case SlotEmitted:
			j.slots = append(j.slots, r)
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

func (l *life) add(r *Record) {
	l.records = append(l.records, r)
	switch r.Kind {
	case Emitted:
		l.emitted = r
	case Repeated:
		l.repeats = append(l.repeats, r)
	case Claimed, Renewed, Written, Refused, TakenBack, MadeDue:
		l.changes = append(l.changes, r)
	case RunStarted:
		l.starts[r.Attempt] = r
	case RunEnded:
		l.ends[r.Attempt] = r
	case Logged:
		l.logged = append(l.logged, r)
	case Published:
		l.published = append(l.published, r)
	case Delivered:
		l.delivered = append(l.delivered, r)
	}
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
