package oracle

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// publication is what a run has published.
type publication struct {
	of       *life
	sent     *Record
	began    time.Time // the run that sent it
	recorded *Record   // while its event was in the queue; nil: only its intent is known
	beside   bool      // it has a row beside that of its event
	deleted  bool
}

// checkPublications walks over what was published outside of the queue, in the order in which it happened.
func (j *judgement) checkPublications() {
	all := map[string]*publication{}
	var order []*publication
	recorded := map[eventqueue.EventID]bool{}
	for i := range j.Records {
		r := &j.Records[i]
		switch p := all[r.Value]; {
		case r.Kind == PublicationSent:
			p = &publication{of: j.life(r.Event), sent: r, began: r.At}
			if run := p.of.starts[r.Attempt]; run != nil {
				p.began = run.At
			}
			j.checkSent(p, order)
			all[r.Value], order = p, append(order, p)
		case r.Kind == PublicationRecorded && p != nil && !p.of.endedBefore(r):
			p.recorded, p.beside = r, recorded[r.Event]
			recorded[r.Event] = true
		case r.Kind == PublicationDeleted && p != nil:
			p.deleted = true
			j.checkDeleted(p, r)
		}
	}
	for _, p := range order {
		if end := p.of.ended; end != nil && end.Label == machine.ExecutesToCompletion && !recorded[p.of.id] {
			j.accuse(p.of, "publications", "it was completed, and what it had published, %s, was not recorded", p.sent.Value)
		}
		if !p.deleted && !j.unknown(p) {
			j.accuse(p.of, "publications", "%s is left behind", p.sent.Value)
		}
	}
}

// checkSent: nothing is published a second time, and what is published has an intent that stays for the time of this run.
func (j *judgement) checkSent(p *publication, earlier []*publication) {
	for _, e := range earlier {
		if e.of == p.of && !e.deleted && e.sent.Publication == p.sent.Publication && e.sent.At.Before(p.began) {
			j.accuse(p.of, "publications", "it published %s, and its run began when %s was there", p.sent.Value, e.sent.Value)
		}
	}
	if least := p.began.Add(p.sent.TTL); !p.sent.Due.IsZero() && p.sent.Due.Before(least) {
		j.accuse(p.of, "publications", "it published %s with an intent until %s: it has to stay until %s", p.sent.Value,
			p.sent.Due.UTC().Format(clock), least.UTC().Format(clock))
	}
}

// checkDeleted: a publication is deleted by one of its key, after its time, and after the end of its event if it is that of the event.
func (j *judgement) checkDeleted(p *publication, r *Record) {
	from := p.began
	if p.recorded != nil {
		from = p.recorded.At
	}
	switch least := from.Add(p.sent.TTL); {
	case r.Publication != p.sent.Publication:
		j.accuse(p.of, "publications", "%s was deleted by event %s, whose key is another", p.sent.Value, r.Event)
	case r.At.Before(least):
		j.accuse(p.of, "publications", "%s was deleted by event %s at %s: it has to stay until %s", p.sent.Value, r.Event,
			r.At.UTC().Format(clock), least.UTC().Format(clock))
	case !p.beside && !p.of.endedBefore(r):
		j.accuse(p.of, "publications", "%s was deleted by event %s, and its own event was in the queue", p.sent.Value, r.Event)
	}
}

// unknown reports whether nobody may know of a publication: it was sent after its event had ended, so perhaps after it was cleaned
// up, and its run was not told, or could not tell the database.
func (j *judgement) unknown(p *publication) bool {
	return p.of.endedBefore(p.sent) && (p.sent.Failed || slices.ContainsFunc(j.Faults, func(f Fault) bool {
		switch f.Kind {
		case Killed, Frozen, LostDatabase, Stopped:
			return (f.Actor == "" || f.Actor == p.sent.Actor) && f.overlaps(p.sent.At, p.sent.At.Add(j.Bounds.LockTimeout))
		default:
			return false
		}
	}))
}

// endedBefore reports whether an event had ended when something happened.
func (l *life) endedBefore(r *Record) bool { return l.ended != nil && l.ended.At.Before(r.At) }
