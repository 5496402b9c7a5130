package check

import (
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/oracle"
)

// oracleChunk is how many events the oracle is shown at once. It checks most
// Events for themselves, and a history of all of them would need much memory.
const oracleChunk = 20_000

// consult has the oracle check the history of all events.
func (c *checker) consult(ids []eventqueue.EventID) {
	slotsOf := map[eventqueue.EventID]time.Time{}
	for _, r := range c.Cron.Records {
		slotsOf[r.event] = r.slot
	}
	var faults []oracle.Fault
	for _, f := range c.faults {
		faults = append(faults, f.forOracle())
	}
	var cronIDs, others []eventqueue.EventID
	for _, id := range ids {
		if s := c.stories[id]; s.entered != nil && s.entered.handler.Name == task.CronName {
			cronIDs = append(cronIDs, id)
		} else if s.entered == nil || !c.stays(s) {
			others = append(others, id)
		}
	}
	for _, chunk := range c.histories(others) {
		h := c.chunk(chunk, faults)
		for _, v := range oracle.Check(h) {
			if v.Event != 0 || class(v.Invariant) == rates { // what is about rules and crons follows below
				c.report(v)
			}
		}
	}
	h := c.chunk(cronIDs, faults)
	h.Crons = []oracle.Cron{{ID: c.Cron.ID, Policy: oracle.All, Slots: c.Cron.Slots()}}
	for _, r := range c.Cron.Records {
		h.Add(oracle.Record{Kind: oracle.SlotEmitted, At: r.at, Event: r.event, Cron: c.Cron.ID, Slot: r.slot})
	}
	for _, v := range oracle.Check(h) {
		c.report(v)
	}
	for _, id := range cronIDs {
		if _, recorded := slotsOf[id]; !recorded {
			c.find(c.stories[id], other, "cron emitted it without recording its slot")
		}
	}
}

func (c *checker) report(v oracle.Violation) {
	what := v.Invariant + " " + v.Problem
	if v.Event != 0 {
		what = fmt.Sprintf("event %s: %s", v.Event, what)
	}
	found := violation{class: classOf(v), what: what, evidence: v.Evidence}
	if s := c.stories[v.Event]; s != nil {
		found.evidence = c.history(s)
	}
	c.result.violations = append(c.result.violations, found)
}

// chunk is the history of some of the events.
func (c *checker) chunk(ids []eventqueue.EventID, faults []oracle.Fault) *oracle.History {
	h := &oracle.History{
		Records: slices.Clone(c.Rules),
		Faults:  slices.Clone(faults),
		Limits:  c.Limits,
		Final:   oracle.Final{At: c.final.at, Rules: c.final.rules},
		Bounds: oracle.Bounds{
			LockTimeout: LockTimeout, RetainHistory: true, Progress: maxWait,
			MaxRetries: func(eventqueue.HandlerKey) (int, int) { return task.MaxRetries, task.MaxRetries },
		},
	}
	for _, id := range ids {
		c.record(h, c.stories[id])
	}
	c.recordRates(h, ids)
	return h
}

// record adds the records of one event.
func (c *checker) record(h *oracle.History, s *story) {
	if s.entered == nil {
		return // reported already
	}
	t := &trial{story: s, runs: c.runs[s.id]}
	t.task, _ = s.task() // that it has none is reported already
	due := s.changes[0].new.dueMicros
	for i := range s.changes {
		ch := &s.changes[i]
		if ch.claims() || ch.operates() {
			break
		}
		if ch.op == opUpdate {
			due = ch.new.dueMicros // a far-off event that was brought near
		}
	}
	emitted := oracle.Record{Kind: oracle.Emitted, At: s.changes[0].at, Actor: s.changes[0].writer, Event: s.id,
		Canvas: s.entered.canvas, Handler: s.entered.handler, Value: s.entered.value, Due: micros(due),
		OrderingKey: t.task.OrderingKey, UniqueKey: t.task.UniqueKey, UniqueFor: uniqueFor(t.task)}
	switch {
	case s.link():
		emitted.Parent = s.entered.parent
	case s.entered.handler == task.Dispatch():
		emitted.Children = task.Links()
	}
	if first := s.changes[0].new; t.task.Odd > 0 { // by hand
		emitted.Attempt, emitted.Retries = first.attempts, int(first.retries)
		if first.lockedMicros != 0 {
			emitted.LockedAt = micros(first.lockedMicros)
		}
	}
	h.Add(emitted)
	c.reportRepeats(h, t)
	holder := ""
	for i := range s.changes {
		ch := &s.changes[i]
		if ch.takesBack(holder) {
			h.Add(oracle.Record{Kind: oracle.TakenBack, At: ch.at, Actor: ch.writer, Event: s.id, Retries: int(ch.new.retries)})
			continue
		}
		if ch.claims() {
			holder, t.holder = ch.writer, ch
		}
		c.reportChange(h, t, ch)
	}
	if s.ending != nil {
		status := "COMPLETED"
		switch {
		case s.ending.failed:
			status = "FAILED"
		case s.ending.cancelled:
			status = "CANCELLED"
		}
		h.Final.Log = append(h.Final.Log, oracle.LogRow{Event: s.id, Status: status, Value: s.ending.value})
	}
	if last := s.changes[len(s.changes)-1]; last.op != opDelete {
		h.Final.Rows = append(h.Final.Rows, oracle.Row{Event: s.id, Due: micros(last.new.dueMicros),
			Retries: int(last.new.retries), Attempt: last.new.attempts, Locked: last.new.lockedMicros != 0})
	}
}

// reportChange adds the record of one change, and with a claim the runs of it.
func (c *checker) reportChange(h *oracle.History, t *trial, ch *change) {
	r := oracle.Record{At: ch.at, Actor: ch.writer, Event: t.id, Attempt: ch.old.attempts}
	switch {
	case ch.claims():
		r.Kind, r.Attempt, r.Retries, r.LockedAt = oracle.Claimed, ch.new.attempts, int(ch.new.retries), micros(ch.new.lockedMicros)
		h.Add(r)
		c.reportRuns(h, t, ch)
		return
	case ch.renews():
		r.Kind, r.LockedAt, r.Together = oracle.Renewed, micros(ch.new.lockedMicros), int(ch.new.together)
	case ch.op == opDelete && t.ending != nil && t.ending.cancelled:
		r.Kind = oracle.Cancelled
	case ch.operates():
		r.Kind, r.Retries, r.Due = oracle.Changed, int(ch.new.retries), micros(ch.new.dueMicros)
	case ch.op == opDelete:
		r.Kind, r.Label = oracle.Written, t.endLabel(ch)
	case ch.op == opUpdate && ch.old.lockedMicros != 0 && ch.new.lockedMicros == 0:
		r.Kind, r.Label = oracle.Written, machine.Released
		if ch.new.dueMicros != ch.old.dueMicros {
			r.Label, r.Due = machine.Snoozed, micros(ch.new.dueMicros)
		}
		switch {
		case ch.new.retries > ch.old.retries:
			r.Label = machine.RetryAllowed
		case t.holder != nil && c.putOff(t, t.holder, ch):
			r.Label = machine.OverLimit
		}
	case c.released(t, ch):
		r.Kind, r.Due = oracle.MadeDue, micros(ch.new.dueMicros)
	default:
		return // of its notification only
	}
	h.Add(r)
}

// endLabel is the label under which the row was deleted, as event_log and the
// last run have it.
func (t *trial) endLabel(deleted *change) machine.Label {
	if t.ending == nil || !t.ending.failed {
		return machine.ExecutesToCompletion
	}
	for _, r := range t.runs {
		if r.process == deleted.writer && r.ended && r.outcome == journal.Permanent {
			return machine.FailedForGood
		}
	}
	return machine.RetryTooMany
}

// reportRuns adds the runs of a claim. The effect or the children of a transaction prove that its
// run ended well, whatever its process could still record.
func (c *checker) reportRuns(h *oracle.History, t *trial, claim *change) {
	attempt := claim.new.attempts
	proved := slices.Contains(t.effects, attempt) || c.dispatched(t, attempt)
	for _, run := range t.runsOf(claim) {
		value := t.entered.value
		if run.sum != journal.Checksum([]byte(value)) {
			value = "another value"
		}
		h.Add(oracle.Record{Kind: oracle.RunStarted, At: run.start, Actor: run.process, Event: t.id, Attempt: attempt, Value: value})
		if run.ended && !proved {
			h.Add(oracle.Record{Kind: oracle.RunEnded, At: run.over(task.TimeoutOf(t.entered.handler.Name)), Actor: run.process, Event: t.id, Attempt: attempt, Result: resultOf(run.outcome)})
		}
	}
	if proved {
		h.Add(oracle.Record{Kind: oracle.RunEnded, At: claim.at, Actor: claim.writer, Event: t.id, Attempt: attempt, Result: oracle.OK})
	}
	if run := c.hung(t, claim); run != nil {
		timeout := run.start.Add(task.TimeoutOf(t.entered.handler.Name))
		h.Faults = append(h.Faults, oracle.Fault{Kind: oracle.Hung, Actor: claim.writer, Event: t.id, From: timeout, To: timeout.Add(2 * LockTimeout)})
	}
}

func resultOf(o journal.Outcome) oracle.Result {
	switch o {
	case journal.OK:
		return oracle.OK
	case journal.Permanent:
		return oracle.Permanent
	case journal.Snoozed:
		return oracle.Snoozed
	case journal.Cancelled:
		return oracle.Cut
	default:
		return oracle.Failed
	}
}
