package main

import (
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
	"eventsv2/test/webtarget"
)

// entry is an event that was accepted.
type entry struct {
	id    eventqueue.EventID
	label string
	value string
	key   string // the ordering key
	// unique is its unique key, which holds for a while after its end.
	unique    string
	uniqueFor time.Duration
	typed     bool               // its completion emits a child for each of emission.Children
	parent    eventqueue.EventID // of such a child
	// emitted is when the call that emitted it returned, due the earliest time at
	// which it may start.
	emitted, due time.Time
}

// judge is what a scenario knows of its events, and of what was done to programs.
type judge struct {
	ledger  []*entry
	target  *target
	faults  []oracle.Fault  // what was done to programs, and to the database
	repeats []oracle.Record // emits that have to have made nothing
	// handlers are those of each worker that is started from now on.
	handlers    []webtarget.Handler
	lockTimeout time.Duration   // the longest of all programs
	operators   map[string]bool // the names of programs that an operator ran
	canFail     map[string]bool // labels whose events may end as FAILED
	exempt      []string        // invariants that the scenario's programs cannot keep, and withoutClaim
}

// findings are how often something was found, by invariant or by what it is, and the first of each.
type findings struct {
	times    map[string]int
	first    map[string]string
	evidence []string
	extra    int // explained repetitions
}

func (f *findings) find(one *entry, what, format string, args ...any) {
	if f.times[what]++; f.times[what] == 1 {
		f.first[what] = fmt.Sprintf("event %s (%s): ", one.id, one.label) + fmt.Sprintf(format, args...)
	}
}

// judge has the oracle judge all events, and looks for what that has no invariant for.
func (j *judge) judge(e *evidence) (*findings, error) {
	f := &findings{times: map[string]int{}, first: map[string]string{}}
	events := j.events(e)
	h, err := j.history(e, events)
	if err != nil {
		return nil, err
	}
	for _, v := range oracle.Check(h) {
		if slices.Contains(j.exempt, v.Invariant) {
			continue
		}
		if f.times[v.Invariant]++; f.times[v.Invariant] == 1 {
			f.first[v.Invariant] = fmt.Sprintf("event %s: %s", v.Event, v.Problem)
		}
		f.evidence = append(f.evidence, v.String())
	}
	for i := range events {
		j.judgeRepeats(events[i].entry, f)
		if events[i].Trace != nil {
			j.judgeAttempts(&events[i], f)
			j.judgeRow(&events[i], f)
		}
	}
	for _, text := range e.rewritten {
		if f.times["rewritten"]++; f.times["rewritten"] == 1 {
			f.first["rewritten"] = text
		}
		f.evidence = append(f.evidence, "rewritten: "+text)
	}
	return f, nil
}

// holds says that locks may last so long: a program with a shorter lock timeout must take over none before.
func (j *judge) holds(lockTimeout time.Duration) { j.lockTimeout = max(j.lockTimeout, lockTimeout) }

// judgeRow looks for a row that is left at the end, whatever its time and the rules, for one that lost its ordering
// key or was rewritten, and for runs without a claim.
func (j *judge) judgeRow(e *event, f *findings) {
	if last := e.Changes[len(e.Changes)-1]; last.Op != record.Delete {
		f.find(e.entry, "stuck", "its row is left: %s", last.New)
	}
	if e.Entered.OrderingKey != e.key {
		f.find(e.entry, "another ordering key", "%q, emitted with %q", e.Entered.OrderingKey, e.key)
	}
	claimed := 0
	for i := range e.Changes {
		ch := &e.Changes[i]
		if ch.Rewritten {
			f.find(e.entry, "rewritten", "its identity or its value, by %s at %s", ch.Writer, ch.At.Format(clockFormat))
		}
		if ch.Claims() {
			claimed += len(e.RunsOf(ch))
		}
	}
	if claimed < len(e.Runs) && !slices.Contains(j.exempt, withoutClaim) {
		f.find(e.entry, withoutClaim, "%d of %d runs belong to one", claimed, len(e.Runs))
	}
}

// judgeAttempts looks for an event that is FAILED though its handler does not fail, and for attempts that are used
// by runs that no handler saw.
func (j *judge) judgeAttempts(e *event, f *findings) {
	if e.Ended(record.Failed) && !j.canFail[e.label] {
		f.find(e.entry, "failed", "after %d runs: %s", len(e.Runs), e.Ending.LastError)
	}
	var claim *record.Change
	for i := range e.Changes {
		switch ch := &e.Changes[i]; {
		case ch.Claims():
			claim = ch
		case claim == nil || !ch.Unlocks() || ch.TakesBack(claim.Writer, e.LockTimeout) || e.Operates(ch):
		case ch.New.Retries > ch.Old.Retries && len(e.RunsOf(claim)) == 0:
			f.find(e.entry, "attempts used without a run", "by %s at %s", ch.Writer, ch.At.Format(clockFormat))
		}
	}
	if failures := len(slices.DeleteFunc(slices.Clone(e.Runs), func(run record.Run) bool { return run.Result == oracle.OK })); e.Ending != nil &&
		slices.Contains(j.exempt, "I9") && int(e.Ending.Retries) > max(failures, len(e.Runs)-1)+1 { // one may have been lost before it began
		f.find(e.entry, "attempts used without a run", "%d were used, and there were %d runs, of which %d did not end well", e.Ending.Retries, len(e.Runs), failures)
	}
}

const (
	clockFormat  = "15:04:05.000"
	withoutClaim = "runs without a claim"
	unexplained  = "unexplained duplicates"
)

// judgeRepeats looks for runs that nothing explains after one that ended well, or that its worker gave up.
func (j *judge) judgeRepeats(one *entry, f *findings) {
	visits := j.target.of(one.id)
	for i, v := range visits[:max(len(visits)-1, 0)] {
		switch next := visits[i+1]; {
		case v.status != 0 && v.status != completed.status: // it asked for that
		case j.excused(v, next):
			f.extra++
		default:
			f.find(one, unexplained, "run by %s at %s, which ended with %d, and again by %s at %s", v.process, v.began.Format(clockFormat),
				v.status, next.process, next.began.Format(clockFormat))
		}
	}
}

// completes is how long the completion of a run may be on its way to the database, where it is lost
// when the worker dies or the database does not answer.
const completes = 2 * time.Second

// excused reports whether a run may be followed by another one: something was done to its process
// while it held the event, or to the process of the other one when that began. A handler that is
// called just before its process is stopped reaches the target when it goes on.
func (j *judge) excused(v, next visit) bool {
	held := next.began // the target has not seen it end
	if over := v.ended.Add(completes); !v.ended.IsZero() && over.Before(held) {
		held = over
	}
	return slices.ContainsFunc(j.faults, func(f oracle.Fault) bool {
		overlaps := func(from, to time.Time) bool { return !f.From.After(to) && !f.To.Before(from) }
		return (f.Actor == "" || f.Actor == v.process) && overlaps(v.began, held) || f.Actor == next.process && overlaps(next.began, next.began)
	})
}
