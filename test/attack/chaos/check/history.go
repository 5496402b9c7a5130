package check

import (
	"fmt"
	"slices"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
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
		if s := c.traces[id]; s.Entered != nil && s.Entered.Handler.Name == task.CronName {
			cronIDs = append(cronIDs, id)
		} else if s.Entered == nil || !c.stays(s) {
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
			c.find(c.traces[id], other, "cron emitted it without recording its slot")
		}
	}
}

func (c *checker) report(v oracle.Violation) {
	what := v.Invariant + " " + v.Problem
	if v.Event != 0 {
		what = fmt.Sprintf("event %s: %s", v.Event, what)
	}
	found := violation{class: classOf(v), what: what, evidence: v.Evidence}
	if s := c.traces[v.Event]; s != nil {
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
		if s := c.traces[id]; s.Entered != nil { // else it is reported already
			e := c.eventOf(s)
			e.Report(h)
			c.reportRepeats(h, &e)
		}
	}
	c.recordRates(h, ids)
	return h
}

// eventOf is an event with what tasks and journals say of it. That it has no task is reported already.
func (c *checker) eventOf(s *record.Trace) record.Event {
	t, _ := taskOf(s)
	rated := c.rateOf(s.Entered) != nil
	e := record.Event{Trace: s, Runs: c.runs[s.ID], OrderingKey: t.OrderingKey, UniqueKey: t.UniqueKey, UniqueFor: uniqueFor(t),
		Dispatch: s.Entered.Handler == task.Dispatch() && c.parents[s.ID], ByHand: t.Odd > 0,
		LockTimeout: LockTimeout, Timeout: task.TimeoutOf(s.Entered.Handler.Name), Ignores: t.Do == task.Deaf, Rated: rated,
		Effects: c.effects[s.ID], Operator: func(writer string) bool { return writer == SlotOperator }, Releases: func(ch *record.Change) bool { return rated && released(ch) }}
	switch {
	case link(s):
		e.Parent = s.Entered.Parent
	case s.Entered.Handler == task.Dispatch():
		e.Children = task.Links()
	}
	return e
}

// taskOf is what an event asks for. Events of cron just succeed.
func taskOf(s *record.Trace) (task.Task, error) {
	if s.Entered.Handler.Module == cronchecker.Module {
		return task.Task{Do: task.Succeed}, nil
	}
	return task.Parse([]byte(s.Entered.Value))
}
