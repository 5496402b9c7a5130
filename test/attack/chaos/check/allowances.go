package check

import (
	"slices"
	"time"

	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// giveBack checks why the holder gave the event back: its run must have ended so,
// as the event asked for or because of a fault, a stop included. Without this a
// worker that never renews a lock could end every long run and call it a retry.
func (c *checker) giveBack(t *trial, ch *record.Change) {
	c.result.figures.givenBack++
	if t.holder == nil {
		return // the oracle's case
	}
	if t.PutOff(t.holder, ch) {
		c.result.figures.putOff++
		return
	}
	if t.expired && ch.New.Retries == ch.Old.Retries && ch.New.DueMicros == ch.Old.DueMicros && len(t.RunsOf(t.holder)) == 0 {
		// I15, I18: an event whose lock once expired is a suspect. It waits until fewer suspects run, for a lock timeout
		// at most, and the beginning of its run is recorded before that; where another transaction holds the row
		// meanwhile, such as an operator's, nothing is run.
		c.allow("an event whose lock had once expired, and that was not run beside others")
		return
	}
	if t.asksForTrouble() {
		for _, r := range t.RunsOf(t.holder) {
			if r.Ended && r.Result != oracle.OK {
				return
			}
			if !r.Ended && r.Attempt < 0 {
				return // its worker gave up first, and the target records it later
			}
		}
	}
	if t.stillRuns(ch) {
		c.allow("a handler that ignores its timeout")
		return
	}
	if c.explained(t.holder.Writer, t.holder.At.Add(-echo), ch.At, nil) {
		return
	}
	c.find(t.Trace, duplicates, "%s gave it back at %s, and neither the event nor a fault asked for that",
		ch.Writer, ch.At.UTC().Format(clockFormat))
}

// stillRuns reports whether an earlier run of the event goes on in the process that changed the row, deaf to
// the loss of its lock: a process does not run an event twice at once, and gives its new claim back.
func (t *trial) stillRuns(ch *record.Change) bool {
	return t.task.Do == task.Deaf && slices.ContainsFunc(t.Runs, func(r record.Run) bool {
		return r.Process == ch.Writer && r.Attempt != t.holder.New.Attempts && r.Start.Before(ch.At) && (!r.Ended || r.End.After(ch.At))
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
