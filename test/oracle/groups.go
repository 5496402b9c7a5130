package oracle

import (
	"eventsv2/eventqueue"
)

// group names the events of one ordering key.
type group struct {
	canvas eventqueue.CanvasID
	key    string
}

func groupOf(emitted *Record) group { return group{emitted.Canvas, emitted.OrderingKey} }

// groups are the events of each ordering key.
func (j *judgement) groups() map[group][]*life {
	if j.ordered != nil {
		return j.ordered
	}
	j.ordered = map[group][]*life{}
	for _, id := range j.order {
		if l := j.lives[id]; l.emitted != nil && l.emitted.OrderingKey != "" {
			j.ordered[groupOf(l.emitted)] = append(j.ordered[groupOf(l.emitted)], l)
		}
	}
	return j.ordered
}

// checkGroups is the promise of ordering keys: no two claims of one key, or no more than
// its limit, are valid at the same time. A lock that has expired, and that nobody has taken over, ends when
// it expired.
func (j *judgement) checkGroups() {
	judged := map[group]bool{}
	for _, id := range j.order {
		l := j.lives[id]
		if l.emitted == nil || l.emitted.OrderingKey == "" || judged[groupOf(l.emitted)] {
			continue
		}
		of := groupOf(l.emitted)
		judged[of] = true
		var spans []span
		for _, one := range j.groups()[of] {
			for _, h := range one.holds {
				spans = append(spans, span{one, h.claim.lockedAt(), j.validUntil(h)})
			}
		}
		j.checkAtOnce(spans, j.mostOfKey(of), "order")
	}
}

// mostOfKey is how many of an ordering key may run at once, when it was most.
func (j *judgement) mostOfKey(of group) int {
	most := 1
	for _, c := range j.Limits {
		if c.Limit.Canvas == of.canvas && (c.Limit.EveryKey || c.Limit.Key == of.key) {
			most = max(most, c.Limit.Max)
		}
	}
	return most
}
