package check

import (
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// Check has the oracle check the history, and searches itself for what a history
// cannot say: emitters that know something else, effects of transactions,
// rows that changed as no statement of the queue changes them, and takeovers
// whose cause does not lie in the very time in which the lock was not renewed.
// It is a pure function.
func Check(e Evidence) *Findings {
	c := &checker{Evidence: e, tags: map[string][]*record.Trace{}, children: map[string]bool{}, rulesOf: map[eventqueue.Scope][]*oracle.Record{}, parents: map[eventqueue.EventID]bool{}}
	for i := range e.Rules {
		c.rulesOf[e.Rules[i].Scope] = append(c.rulesOf[e.Rules[i].Scope], &e.Rules[i])
	}
	c.result.figures.allowances = map[string]int{}
	ids := make([]eventqueue.EventID, 0, len(e.traces))
	for id := range e.traces {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, s := range e.traces {
		if s.Entered != nil && link(s) {
			c.parents[s.Entered.Parent] = true
		}
	}
	for _, id := range ids {
		c.event(e.traces[id])
	}
	c.sortRepeats()
	for id, runs := range e.runs {
		if e.traces[id] == nil {
			c.find(nil, other, "event %s was run %d times and never existed", id, len(runs))
		}
	}
	c.emits()
	c.sequences()
	for _, text := range e.rewritten {
		c.find(nil, other, "a row that must not change has changed: %s", text)
	}
	for _, text := range e.MissingDefaults {
		c.find(nil, other, "other programs' defaults were not in force: %s", text)
	}
	c.consult(ids)
	c.sortWaits()
	return &c.result
}

// event checks the trace of one event.
func (c *checker) event(s *record.Trace) {
	f := &c.result.figures
	f.runs += len(c.runs[s.ID])
	if s.Entered == nil {
		c.find(s, other, "there is no record of how it entered")
		return
	}
	f.events++
	job, err := taskOf(s)
	if err != nil {
		c.find(s, other, "%v", err)
		return
	}
	t := &trial{Event: c.eventOf(s), task: job}
	if job.Tag != "" && !link(s) {
		c.tags[job.Tag] = append(c.tags[job.Tag], s)
	}
	if s.Entered.OrderingKey != job.OrderingKey {
		c.find(s, other, "it entered with the ordering key %q, and was emitted with %q", s.Entered.OrderingKey, job.OrderingKey)
	}
	if c.stays(s) {
		c.untouched(t)
		return
	}
	for i := range s.Changes {
		c.change(t, &s.Changes[i], i == 0)
	}
	if s.Ending != nil {
		switch {
		case s.Ended(record.Failed):
			f.failed++
		case s.Ended(record.Cancelled):
			f.cancelled++
		default:
			f.completed++
		}
	}
	c.handlers(t)
	c.checkEffects(t)
}

// change checks one change of the row.
func (c *checker) change(t *trial, ch *record.Change, first bool) {
	switch {
	case (ch.Op == record.Insert) != first:
		c.find(t.Trace, other, "it was inserted again, or changed before it was inserted")
	case t.deleted != nil:
		c.find(t.Trace, other, "its row was changed after it was deleted")
	case ch.Op == record.Insert:
	case ch.Op == record.Delete:
		t.deleted = ch
		c.result.figures.longest = max(c.result.figures.longest, ch.At.Sub(t.Changes[0].At))
		if t.Ending == nil {
			c.find(t.Trace, lost, "%s deleted it, and event_log knows nothing of it", ch.Writer)
		}
	case ch.Rewritten:
		c.find(t.Trace, other, "%s changed its identity or its value", ch.Writer)
	case ch.Claims():
		c.claim(t, ch)
	case ch.New.Attempts != ch.Old.Attempts:
		c.find(t.Trace, stale, "%s changed the fence from %d to %d without a claim", ch.Writer, ch.Old.Attempts, ch.New.Attempts)
	case ch.Old.LockedMicros == 0 && ch.New.LockedMicros != 0:
		c.find(t.Trace, stale, "%s locked it without a claim", ch.Writer)
	case t.Operates(ch):
		c.result.figures.operated++
		if ch.Old.LockedMicros != 0 && t.holder != nil {
			t.expired = true
			c.takeover(t, ch)
		}
	case t.holder != nil && ch.TakesBack(t.holder.Writer, LockTimeout):
		c.result.figures.takenBack++
		t.expired = true
		c.takeover(t, ch)
	case ch.Unlocks():
		c.giveBack(t, ch)
	case t.Releases(ch):
	case ch.New.Retries != ch.Old.Retries, ch.New.DueMicros != ch.Old.DueMicros && ch.Writer != Shifter:
		c.find(t.Trace, stale, "%s rescheduled it otherwise than at the end of a run", ch.Writer)
	case ch.Renews():
		c.result.figures.renewals++
	}
}

// claim counts a claim and checks whether taking over had a reason.
func (c *checker) claim(t *trial, ch *record.Change) {
	f := &c.result.figures
	f.claims++
	if t.holder == nil {
		c.firstClaim(t, ch)
	}
	if ch.Old.LockedMicros != 0 {
		t.expired = true // also a lock that was written by hand
		if t.holder != nil {
			f.takeovers++
			c.takeover(t, ch)
		}
	}
	t.holder = ch
}

// takeover looks for the fault that kept the holder from renewing its lock: it
// must lie between the last renewal and the time at which the lock expired (I3).
func (c *checker) takeover(t *trial, ch *record.Change) {
	renewed, expired := record.Micros(ch.Old.LockedMicros), record.Micros(ch.Old.LockedMicros).Add(LockTimeout)
	if t.Hung(t.holder) != nil {
		c.allow("a handler that ignores its timeout")
		return
	}
	if c.explained(t.holder.Writer, renewed, expired, fault.unplanned) || c.stoppedInOutage(t.holder.Writer, renewed, expired) {
		return
	}
	c.find(t.Trace, duplicates, "%s took it over at %s, and no fault of %s explains why it was not renewed after %s",
		ch.Writer, ch.At.UTC().Format(clockFormat), t.holder.Writer, renewed.Format(clockFormat))
}

// handlers checks what handlers recorded: a run needs a claim, a claim has one run,
// and each saw the bytes that were emitted (I8).
func (c *checker) handlers(t *trial) {
	sum := record.Checksum(t.Entered.Value)
	claimed := 0
	for i := range t.Changes {
		if ch := &t.Changes[i]; ch.Claims() {
			n := len(t.RunsOf(ch))
			claimed += n
			if n > 1 {
				c.find(t.Trace, duplicates, "claim %d of %s was run %d times", ch.New.Attempts, ch.Writer, n)
			}
		}
	}
	if claimed < len(t.Runs) {
		c.find(t.Trace, duplicates, "it was run without a claim: %d of %d runs belong to one", claimed, len(t.Runs))
	}
	for _, r := range t.Runs {
		if r.Sum != sum {
			c.find(t.Trace, other, "%s saw another value than the one that was emitted", r.Process)
		}
	}
}

// checkEffects checks the transactions in which events were completed: the effect and
// the child are there exactly once, and only with the end of the event.
func (c *checker) checkEffects(t *trial) {
	want := 0
	if t.inTx(c.Embedded) {
		want = 1
		c.result.figures.completedInTx++
		c.children[t.task.Child()] = true
	}
	if got := t.Effects; len(got) != want || (want == 1 && got[0] != t.deleted.Old.Attempts) {
		c.find(t.Trace, other, "the effects of its transaction are %v; %d must be there, of the claim that ended it", got, want)
	}
}

// inTx reports whether the event was completed in a transaction.
func (t *trial) inTx(embedded func(string) bool) bool {
	return t.deleted != nil && t.Ending != nil && !t.Ended(record.Failed) && !t.Ended(record.Cancelled) &&
		(t.task.Do == task.Complete || t.task.Do == task.Undo) && embedded(t.deleted.Writer)
}
