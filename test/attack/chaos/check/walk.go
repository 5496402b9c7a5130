package check

import (
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/oracle"
)

// Check has the oracle check the history, and searches itself for what a history
// cannot say: emitters that know something else, effects of transactions,
// rows that changed as no statement of the queue changes them, and takeovers
// whose cause does not lie in the very time in which the lock was not renewed.
// It is a pure function.
func Check(e Evidence) *Findings {
	c := &checker{Evidence: e, tags: map[string][]*story{}, children: map[string]bool{}, rulesOf: map[eventqueue.Scope][]*oracle.Record{}, parents: map[eventqueue.EventID]bool{}}
	for i := range e.Rules {
		c.rulesOf[e.Rules[i].Scope] = append(c.rulesOf[e.Rules[i].Scope], &e.Rules[i])
	}
	c.result.figures.allowances = map[string]int{}
	ids := make([]eventqueue.EventID, 0, len(e.stories))
	for id := range e.stories {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, s := range e.stories {
		if s.entered != nil && s.link() {
			c.parents[s.entered.parent] = true
		}
	}
	for _, id := range ids {
		c.event(e.stories[id], e.runs[id])
	}
	c.sortRepeats()
	for id, runs := range e.runs {
		if e.stories[id] == nil {
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

// event checks the story of one event.
func (c *checker) event(s *story, runs []handled) {
	f := &c.result.figures
	f.runs += len(runs)
	if s.entered == nil {
		c.find(s, other, "there is no record of how it entered")
		return
	}
	f.events++
	job, err := s.task()
	if err != nil {
		c.find(s, other, "%v", err)
		return
	}
	t := &trial{story: s, runs: runs, task: job}
	if job.Tag != "" && !s.link() {
		c.tags[job.Tag] = append(c.tags[job.Tag], s)
	}
	if c.stays(s) {
		c.untouched(t)
		return
	}
	for i := range s.changes {
		c.change(t, &s.changes[i], i == 0)
	}
	if s.ending != nil {
		switch {
		case s.ending.failed:
			f.failed++
		case s.ending.cancelled:
			f.cancelled++
		default:
			f.completed++
		}
	}
	c.handlers(t)
	c.effects(t)
}

// change checks one change of the row.
func (c *checker) change(t *trial, ch *change, first bool) {
	switch {
	case (ch.op == opInsert) != first:
		c.find(t.story, other, "it was inserted again, or changed before it was inserted")
	case t.deleted != nil:
		c.find(t.story, other, "its row was changed after it was deleted")
	case ch.op == opInsert:
	case ch.op == opDelete:
		t.deleted = ch
		c.result.figures.longest = max(c.result.figures.longest, ch.at.Sub(t.changes[0].at))
		if t.ending == nil {
			c.find(t.story, lost, "%s deleted it, and event_log knows nothing of it", ch.writer)
		}
	case ch.rewritten:
		c.find(t.story, other, "%s changed its identity or its value", ch.writer)
	case ch.claims():
		c.claim(t, ch)
	case ch.new.attempts != ch.old.attempts:
		c.find(t.story, stale, "%s changed the fence from %d to %d without a claim", ch.writer, ch.old.attempts, ch.new.attempts)
	case ch.old.lockedMicros == 0 && ch.new.lockedMicros != 0:
		c.find(t.story, stale, "%s locked it without a claim", ch.writer)
	case ch.operates():
		c.result.figures.operated++
		if ch.old.lockedMicros != 0 && t.holder != nil {
			t.expired = true
			c.takeover(t, ch)
		}
	case t.holder != nil && ch.takesBack(t.holder.writer):
		c.result.figures.takenBack++
		t.expired = true
		c.takeover(t, ch)
	case ch.old.lockedMicros != 0 && ch.new.lockedMicros == 0:
		c.giveBack(t, ch)
	case c.released(t, ch):
	case ch.new.retries != ch.old.retries, ch.new.dueMicros != ch.old.dueMicros && ch.writer != Shifter:
		c.find(t.story, stale, "%s rescheduled it otherwise than at the end of a run", ch.writer)
	case ch.renews():
		c.result.figures.renewals++
	}
}

// claim counts a claim and checks whether taking over had a reason.
func (c *checker) claim(t *trial, ch *change) {
	f := &c.result.figures
	f.claims++
	if t.holder == nil {
		c.firstClaim(t, ch)
	}
	if ch.old.lockedMicros != 0 {
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
func (c *checker) takeover(t *trial, ch *change) {
	renewed, expired := micros(ch.old.lockedMicros), micros(ch.old.lockedMicros).Add(LockTimeout)
	if c.hung(t, t.holder) != nil {
		c.allow("a handler that ignores its timeout")
		return
	}
	if c.explained(t.holder.writer, renewed, expired, fault.unplanned) || c.stoppedInOutage(t.holder.writer, renewed, expired) {
		return
	}
	c.find(t.story, duplicates, "%s took it over at %s, and no fault of %s explains why it was not renewed after %s",
		ch.writer, ch.at.UTC().Format(clockFormat), t.holder.writer, renewed.Format(clockFormat))
}

// handlers checks what handlers recorded: a run needs a claim, a claim has one run,
// and each saw the bytes that were emitted (I8).
func (c *checker) handlers(t *trial) {
	sum := journal.Checksum([]byte(t.entered.value))
	claimed := 0
	for i := range t.changes {
		if ch := &t.changes[i]; ch.claims() {
			n := len(t.runsOf(ch))
			claimed += n
			if n > 1 {
				c.find(t.story, duplicates, "claim %d of %s was run %d times", ch.new.attempts, ch.writer, n)
			}
		}
	}
	if claimed < len(t.runs) {
		c.find(t.story, duplicates, "it was run without a claim: %d of %d runs belong to one", claimed, len(t.runs))
	}
	for _, r := range t.runs {
		if r.sum != sum {
			c.find(t.story, other, "%s saw another value than the one that was emitted", r.process)
		}
	}
}

// effects checks the transactions in which events were completed: the effect and
// the child are there exactly once, and only with the end of the event.
func (c *checker) effects(t *trial) {
	want := 0
	if t.inTx(c.Embedded) {
		want = 1
		c.result.figures.completedInTx++
		c.children[t.task.Child()] = true
	}
	if got := t.effects; len(got) != want || (want == 1 && got[0] != t.deleted.old.attempts) {
		c.find(t.story, other, "the effects of its transaction are %v; %d must be there, of the claim that ended it", got, want)
	}
}

// inTx reports whether the event was completed in a transaction.
func (t *trial) inTx(embedded func(string) bool) bool {
	return t.deleted != nil && t.ending != nil && !t.ending.failed && !t.ending.cancelled &&
		(t.task.Do == task.Complete || t.task.Do == task.Undo) && embedded(t.deleted.writer)
}
