package oracle

import "time"

// checkAmplification is I11; see Bounds for the bounds.
func (j *judgement) checkAmplification(l *life) {
	if j.Bounds.LostAfter == 0 || l.emitted == nil || len(l.published)+len(l.delivered) == 0 {
		return
	}
	end := j.Final.At
	if l.ended != nil {
		end = l.ended.At
	}
	lifetime := max(end.Sub(l.emitted.At), 0)
	failed := 0
	for _, r := range l.published {
		if r.Failed {
			failed++
		}
	}
	most := 6*(1+len(l.repeats)+l.again+l.untaken+len(l.holds)+l.changed()+j.lifts(l.emitted)+failed) + int(lifetime/(10*j.Bounds.LostAfter))
	if len(l.published) > most {
		j.accuse(l, "I11", "published %d times in %s: at most %d", len(l.published), lifetime, most)
	}
	// A notification may outlive its event.
	if n := len(l.delivered); n > 0 {
		lifetime = max(lifetime, l.delivered[n-1].At.Sub(l.emitted.At))
	}
	most = len(l.published) * (8*(1+len(l.holds)) + int(lifetime/j.Bounds.lookEvery()))
	if len(l.delivered) > most {
		j.accuse(l, "I11", "delivered %d times in %s: at most %d", len(l.delivered), lifetime, most)
	}
	j.checkPaused(l)
}

// checkPaused holds what was published while a rule was certainly in force
// against what may be. A paused event costs nothing.
func (j *judgement) checkPaused(l *life) {
	for _, f := range j.forcesOf(l.emitted) {
		n, most := 0, l.mayPublish(f)
		for _, r := range l.published {
			if f.has(r.At) {
				n++
				if r.Failed {
					most++
				}
			}
		}
		if n > most {
			j.accuse(l, "I11", "published %d times while its handler was held back from %s on: at most %d", n, f.from.UTC().Format(clock), most)
		}
	}
}

// mayPublish is how often an event that a rule holds back may be published: for its
// emit, which asks a publisher that was down with it, and because it is pending; when
// its ordering group admits it; for each emit that was a repeat of it, and asks with it
// too; for each time that an emitter without an answer finds it, which is an emit again;
// for each run that ended meanwhile, which leaves it pending; for each change by an operator or by an emit that replaces it, which does, too, and asks a
// publisher that was down with it; and for each statement that takes it and gets no answer, which leaves it pending as well, and
// whoever takes it then may ask such a publisher with it.
func (l *life) mayPublish(f force) int {
	most := 2 + 2*l.again + 2*l.untaken
	if l.emitted.OrderingKey != "" {
		most++
	}
	for _, r := range l.repeats {
		if f.to.IsZero() || r.At.Before(f.to) { // it does not wait for the publish
			most++
		}
	}
	for _, r := range l.changes {
		if (r.Kind == Changed || r.Kind == Replaced) && (f.to.IsZero() || r.At.Before(f.to)) { // it is pending again, and asks a publisher that was down, too
			most += 2
		}
	}
	for _, h := range l.holds {
		if h.end != nil && f.has(h.end.At) {
			most++
		}
	}
	return most
}

// changed counts how often operators and emits changed an event that went on waiting.
func (l *life) changed() (times int) {
	for _, r := range l.changes {
		if r.Kind == Changed || r.Kind == Replaced {
			times++
		}
	}
	return times
}

// lookEvery is the bound with its default.
func (b *Bounds) lookEvery() time.Duration {
	if b.CheckEvery == 0 {
		return time.Second
	}
	return b.CheckEvery
}
