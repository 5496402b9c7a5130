package oracle

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// line names the events of one ordering key.
type line struct {
	canvas eventqueue.CanvasID
	key    string
}

// judgeLines is the promise of ordering keys: no two claims of one key are valid at
// the same time. A lock that has expired, and that nobody has taken over, ends when
// it expired.
func (j *judgement) judgeLines() {
	type span struct {
		of       *life
		from, to time.Time
	}
	lines := map[line][]span{}
	var order []line
	for _, id := range j.order {
		l := j.lives[id]
		if l.emitted == nil || l.emitted.OrderingKey == "" {
			continue
		}
		of := line{l.emitted.Canvas, l.emitted.OrderingKey}
		if lines[of] == nil {
			order = append(order, of)
		}
		for _, h := range l.holds {
			lines[of] = append(lines[of], span{l, h.claim.lockedAt(), j.validUntil(h)})
		}
	}
	for _, of := range order {
		spans := lines[of]
		slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
		for i := 1; i < len(spans); i++ {
			before, s := spans[i-1], spans[i]
			if before.of != s.of && s.from.Before(before.to) {
				j.accuse(s.of, "order", "claimed while event %s of its key %q was so for another %s", before.of.id, of.key, before.to.Sub(s.from))
			}
			if spans[i].to.Before(before.to) {
				spans[i].to, spans[i].of = before.to, before.of
			}
		}
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
