package oracle

import "time"

// checkAmplification is I11; see Bounds for the bounds.
func (j *judgement) checkAmplification(l *life) {
	if j.Bounds.Quiet == 0 || l.emitted == nil || len(l.published)+len(l.delivered) == 0 {
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
	most := 6*(1+len(l.holds)+j.lifts(scopeOf(l.emitted))+failed) + int(lifetime/(10*j.Bounds.Quiet))
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
// against what may be: the notification of the emit, one that was owed, and for
// each publish that failed another one. A paused event costs nothing.
func (j *judgement) checkPaused(l *life) {
	for _, f := range j.forcesOf(scopeOf(l.emitted)) {
		most, n := 2, 0
		for _, r := range l.published {
			if r.At.After(f.from) && (f.to.IsZero() || r.At.Before(f.to)) {
				n++
				if r.Failed {
					most++
				}
			}
		}
		for _, h := range l.holds { // a run that had begun before may owe one more
			if h.end != nil && h.end.At.After(f.from) {
				most++
			}
		}
		if n > most {
			j.accuse(l, "I11", "published %d times while its handler was held back from %s on: at most %d", n, f.from.UTC().Format(clock), most)
		}
	}
}

// lookEvery is the bound with its default.
func (b *Bounds) lookEvery() time.Duration {
	if b.CheckEvery == 0 {
		return time.Second
	}
	return b.CheckEvery
}
