package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue/operate"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// slowest is of how many events that waited longest the history is retained.
const slowest = 3

// maxWait is how long an event may wait for its first claim while it is due and
// no rule holds it back: much longer than several outages in a row take.
const maxWait = 5 * time.Minute

// firstClaim records how long the event was due before it was claimed, unless a
// rule may have held it back.
func (c *checker) firstClaim(t *trial, ch *record.Change) {
	due := t.Changes[0].At
	if at := record.Micros(ch.Old.DueMicros); at.After(due) {
		due = at
	}
	if heldBack(c.rulesOf[t.Entered.Scope()], due, ch.At) {
		c.result.figures.heldBack++
		return
	}
	if t.task.OrderingKey != "" {
		return // how long it waits is up to those before it
	}
	waited := max(record.Micros(ch.New.LockedMicros).Sub(due), 0)
	c.result.figures.waits = append(c.result.figures.waits, wait{t.Trace, waited})
	if waited > maxWait && !c.stoodStill(due, ch.At) {
		c.find(t.Trace, stuck, "it was due for %s before anybody claimed it, and nothing held it back", waited)
	}
}

// stoodStill reports whether the machine or Postgres stood still in a span, which
// nobody planned.
func (c *checker) stoodStill(from, to time.Time) bool {
	return slices.ContainsFunc(c.faults, func(f fault) bool {
		return f.target == "" && !f.from.After(to) && !f.to.Before(from)
	})
}

// sortWaits puts the longest first and retains their histories.
func (c *checker) sortWaits() {
	waits := c.result.figures.waits
	slices.SortStableFunc(waits, func(a, b wait) int { return cmp.Compare(b.lasted, a.lasted) })
	for _, w := range waits[:min(len(waits), slowest)] {
		c.result.slowest = append(c.result.slowest, fmt.Sprintf("event %s waited %s", w.trace.ID, w.lasted))
		c.result.slowest = append(c.result.slowest, c.history(w.trace)...)
	}
}

// heldBack reports whether a rule of one scope may have been in force at any time of
// a span: one that was asked for before its end, and not certainly lifted before
// its beginning. A lift is certain only if it began after the rule had been added.
func heldBack(records []*oracle.Record, from, to time.Time) bool {
	inForce := map[operate.RuleType]bool{}
	adding := map[operate.RuleType]int{}
	asked := map[int64]bool{} // calls to lift, and whether they began when nobody was adding
	for _, r := range records {
		if r.At.After(to) {
			break
		}
		switch r.Kind {
		case oracle.RuleAsked:
			inForce[r.Rule] = true
			adding[r.Rule]++
		case oracle.RuleAdded:
			adding[r.Rule]--
		case oracle.LiftAsked:
			asked[r.Call] = adding[r.Rule] == 0
		case oracle.RuleLifted:
			if asked[r.Call] && adding[r.Rule] == 0 && r.At.Before(from) {
				inForce[r.Rule] = false
			}
		}
	}
	return inForce[operate.PauseRule] || inForce[operate.BlockRule]
}
