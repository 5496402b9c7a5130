package check

import (
	"slices"
	"time"

	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
)

// giveBack checks why the holder gave the event back: its run must have ended so,
// as the event asked for or because of a fault, a stop included. Without this a
// worker that never renews a lock could end every long run and call it a retry.
func (c *checker) giveBack(t *trial, ch *change) {
	c.result.figures.givenBack++
	if t.holder == nil {
		return // the oracle's case
	}
	if c.putOff(t, t.holder, ch) {
		c.result.figures.putOff++
		return
	}
	if t.expired && ch.new.retries == ch.old.retries && ch.new.dueMicros == ch.old.dueMicros && len(t.runsOf(t.holder)) == 0 {
		// I15, I18: an event whose lock once expired is a suspect. It waits until fewer suspects run, for a lock timeout
		// at most, and the beginning of its run is recorded before that; where another transaction holds the row
		// meanwhile, such as an operator's, nothing is run.
		c.allow("an event whose lock had once expired, and that was not run beside others")
		return
	}
	if t.asksForTrouble() {
		for _, r := range t.runsOf(t.holder) {
			if r.ended && r.outcome != journal.OK {
				return
			}
			if !r.ended && r.attempt < 0 {
				return // its worker gave up first, and the target records it later
			}
		}
	}
	if t.stillRuns(ch) {
		c.allow("a handler that ignores its timeout")
		return
	}
	if c.explained(t.holder.writer, t.holder.at.Add(-echo), ch.at, nil) {
		return
	}
	c.find(t.story, duplicates, "%s gave it back at %s, and neither the event nor a fault asked for that",
		ch.writer, ch.at.UTC().Format(clockFormat))
}

// stillRuns reports whether an earlier run of the event goes on in the process that changed the row, deaf to
// the loss of its lock: a process does not run an event twice at once, and gives its new claim back.
func (t *trial) stillRuns(ch *change) bool {
	return t.task.Do == task.Deaf && slices.ContainsFunc(t.runs, func(r handled) bool {
		return r.process == ch.writer && r.attempt != t.holder.new.attempts && r.start.Before(ch.at) && (!r.ended || r.end.After(ch.at))
	})
}

// asksForTrouble reports whether some run of the event is to end otherwise than
// well.
func (t *trial) asksForTrouble() bool { return t.task.Do != task.Succeed && t.task.Do != task.Complete }

// stopTakes is how long a worker takes at most from SIGTERM to its end: the grace
// period, and the last writes and answers.
const stopTakes = 5 * time.Second

// stoppedInOutage looks for an orderly stop that ended in a span, and in which an
// Unplanned fault kept the process from writing how its events had ended. The
// heartbeat may have renewed the lock once more in between.
func (c *checker) stoppedInOutage(process string, from, to time.Time) bool {
	for _, f := range c.faults {
		if f.what == processEnded && f.target == process && !f.from.Before(from) && !f.from.After(to) {
			return c.explained(process, f.from.Add(-stopTakes-echo), f.from, fault.unplanned)
		}
	}
	return false
}
