package check

import (
	"cmp"
	"slices"
	"time"

	"eventsv2/test/attack/record"
)

// member is an event of an ordering key, with what its order is checked by.
type member struct {
	Emission
	trace          *record.Trace
	claimed, ended time.Time // for the first time; for good. Zero: never
}

// end is when the event had ended; one that never did ends after all others.
func (m *member) end() time.Time {
	if m.ended.IsZero() {
		return m.Began.Add(1000 * time.Hour)
	}
	return m.ended
}

// sequences checks the order within each key: an event is not claimed before those have
// ended whose emit had returned when its own began, or that stand before it in the same
// call. Those with a delay do not count: they join their group when they are due.
func (c *checker) sequences() {
	keys := map[string][]*member{}
	for tag, emission := range c.Ordered {
		if len(c.tags[tag]) != 1 {
			continue // reported already
		}
		m := &member{Emission: emission, trace: c.tags[tag][0]}
		for i := range m.trace.Changes {
			ch := &m.trace.Changes[i]
			switch {
			case ch.Op == record.Delete:
				m.ended = ch.At
			case m.claimed.IsZero() && ch.Claims():
				m.claimed = record.Micros(ch.New.LockedMicros)
			}
		}
		key := c.bond(m.trace)
		keys[key] = append(keys[key], m)
	}
	for _, members := range keys {
		c.sequence(members)
	}
}

// sequence checks the events of one key.
func (c *checker) sequence(members []*member) {
	byReturn := slices.SortedFunc(slices.Values(members), func(a, b *member) int { return a.Returned.Compare(b.Returned) })
	slices.SortFunc(members, func(a, b *member) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Emitter, b.Emitter), cmp.Compare(a.Index, b.Index))
	})
	var last, lastOfCall, before *member // of those before an event, the one that ended last
	later := func(a, b *member) *member {
		if b.Delayed || a != nil && !b.end().After(a.end()) {
			return a
		}
		return b
	}
	for _, m := range members {
		for len(byReturn) > 0 && byReturn[0].Returned.Before(m.Began) {
			last, byReturn = later(last, byReturn[0]), byReturn[1:]
		}
		if before == nil || before.Emitter != m.Emitter || !before.Began.Equal(m.Began) {
			lastOfCall = nil
		}
		for _, earlier := range []*member{last, lastOfCall} {
			if earlier != nil && !m.claimed.IsZero() && m.claimed.Before(earlier.end()) {
				c.find(m.trace, order, "it was claimed at %s, and event %s, which was emitted with the same key before it, had not ended",
					m.claimed.Format(clockFormat), earlier.trace.ID)
			}
		}
		before, lastOfCall = m, later(lastOfCall, m)
	}
}
