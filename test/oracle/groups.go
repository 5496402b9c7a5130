package oracle

import (
	"time"

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

// validUntil is the end of a claim: its write, or its expiry.
func (j *judgement) validUntil(h *hold) time.Time {
	if h.end != nil {
		return h.end.At
	}
	timeout := h.claim.LockTimeout
	if timeout == 0 {
		timeout = j.Bounds.LockTimeout
	}
	expiry := h.lockedAt.Add(timeout)
	if h.next != nil && h.next.lockedAt().Before(expiry) {
		return h.next.lockedAt()
	}
	return expiry
}
