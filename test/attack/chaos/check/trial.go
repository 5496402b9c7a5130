package check

import (
	"time"

	"eventsv2/test/attack/chaos/task"
)

// trial is the state of the checker within the story of one event.
type trial struct {
	*story
	runs    []handled
	task    task.Task
	holder  *change // the last claim
	expired bool    // a lock of it has expired
	deleted *change
}

func (ch *change) claims() bool {
	return ch.op == opUpdate && ch.new.attempts == ch.old.attempts+1 && ch.new.lockedMicros != 0
}

func (ch *change) renews() bool {
	return ch.op == opUpdate && ch.new.attempts == ch.old.attempts && ch.old.lockedMicros != 0 &&
		ch.new.lockedMicros != 0 && ch.old.lockedMicros != ch.new.lockedMicros
}

// hung returns the run of a claim that went on past its timeout, as its event
// asked for, or nil.
func (c *checker) hung(t *trial, claim *change) *handled {
	if t.task.Do != task.Deaf {
		return nil
	}
	for _, r := range t.runsOf(claim) {
		if !r.ended || r.end.Sub(r.start) > task.TimeoutOf(t.entered.handler.Name) {
			return &r
		}
	}
	return nil
}

// runsOf returns the runs that belong to a claim. Where attempts are not known a
// run belongs to the last claim of its process before it.
func (t *trial) runsOf(claim *change) []handled {
	var next time.Time // the following claim of the same process
	for i := range t.changes {
		ch := &t.changes[i]
		if ch.at.After(claim.at) && ch.writer == claim.writer && ch.claims() {
			next = ch.at
			break
		}
	}
	var runs []handled
	for _, r := range t.runs {
		switch {
		case r.process != claim.writer:
		case r.attempt == claim.new.attempts:
			runs = append(runs, r)
		case r.attempt < 0 && !r.start.Before(claim.at.Add(-slack)) && (next.IsZero() || r.start.Before(next)):
			runs = append(runs, r)
		}
	}
	return runs
}

func micros(m int64) time.Time { return time.UnixMicro(m).UTC() }
