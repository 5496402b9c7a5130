package oracle

import (
	"eventsv2/eventqueue"
)

// group names the events of one ordering key.
type group struct {
	canvas eventqueue.CanvasID
	key    string
}

// checkGroups is the promise of ordering keys: no two claims of one key, or no more than
// its limit, are valid at the same time. A lock that has expired, and that nobody has taken over, ends when
// it expired.
func (j *judgement) checkGroups() {
	groups := map[group][]span{}
	var order []group
	for _, id := range j.order {
		l := j.lives[id]
		if l.emitted == nil || l.emitted.OrderingKey == "" {
			continue
		}
		of := group{l.emitted.Canvas, l.emitted.OrderingKey}
		if groups[of] == nil {
			order = append(order, of)
		}
		for _, h := range l.holds {
			groups[of] = append(groups[of], span{l, h.claim.lockedAt(), j.validUntil(h)})
		}
	}
	for _, of := range order {
		j.checkAtOnce(groups[of], j.mostOfKey(of), "order")
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
