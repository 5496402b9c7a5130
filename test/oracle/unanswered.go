package oracle

import "time"

// How soon an event has to be known to somebody when the answer of its emit was lost: from the
// commit, and from the end of the last further fault, after which the emitter may be waiting for its
// next try. It tries no longer than for a minute.
const (
	unansweredMost       = 2 * time.Second
	unansweredAfterFault = 8 * time.Second
	unansweredTries      = 45 * time.Second
)

// checkUnanswered is I19 for emits: an event that was committed, and whose emitter was not told, is
// found by its emitter if nobody else knows of it.
func (j *judgement) checkUnanswered(l *life) {
	if l.unanswered == nil || l.emitted == nil || l.emitted.OrderingKey != "" { // others may be before it
		return
	}
	actor, committed := l.unanswered.Actor, l.emitted.At
	until, last := committed.Add(unansweredMost), committed
	for again := true; again; {
		again = false
		for i := range j.Faults {
			f := &j.Faults[i]
			switch {
			case f.Kind == NotifierFault, f.Kind == AnswerFault, f.Actor != "" && f.Actor != actor, f.From.After(until), f.From.Equal(committed):
			case f.To.IsZero(), f.Kind == Killed, f.Kind == Stopped:
				if f.To.IsZero() || f.To.After(committed) {
					return
				}
			case f.To.After(last):
				last, again = f.To, true
				until = last.Add(unansweredAfterFault)
			}
		}
	}
	if ended, ok := j.left[actor]; ok && !ended.After(until) || last.Sub(committed) > unansweredTries || until.After(j.Final.At) {
		return
	}
	for _, r := range l.records {
		if r.Kind != Emitted && r.Kind != EmitUnanswered && !r.At.After(until) {
			return
		}
	}
	j.accuse(l, "I19", "the answer of its emit was lost, and nobody knew of it before %s", until.UTC().Format(clock))
}
