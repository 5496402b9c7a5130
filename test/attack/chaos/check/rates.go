package check

import (
	"cmp"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// rateOf is the rate limit that events such as this one have, or nil.
func (c *checker) rateOf(e *record.Entered) *operate.RateLimit {
	return c.rateOfScope(e.Scope())
}

func (c *checker) rateOfScope(scope eventqueue.Scope) *operate.RateLimit {
	i := slices.IndexFunc(c.Rates, func(r oracle.RateChange) bool { return r.Limit.Scope == scope && r.Limit.PerMinute > 0 })
	if i < 0 {
		return nil
	}
	return &c.Rates[i].Limit
}

// released reports whether a change made an event due that a rate limit had put off, if it was under one.
func released(ch *record.Change) bool {
	return ch.Op == record.Update && ch.Old.LockedMicros == 0 && ch.New.LockedMicros == 0 && ch.Writer == SlotEmitter &&
		ch.New.DueMicros < ch.Old.DueMicros && ch.New.Retries == ch.Old.Retries
}

// recordRates adds what the rate limits counted for the scopes of some events, and puts
// grants and runs in order: clocks are those of one machine.
func (c *checker) recordRates(h *oracle.History, ids []eventqueue.EventID) {
	scopes := map[eventqueue.Scope]bool{}
	for _, id := range ids {
		if e := c.traces[id].Entered; e != nil && c.rateOf(e) != nil {
			scopes[c.rateOf(e).Scope] = true
		}
	}
	if len(scopes) == 0 {
		return
	}
	h.Rates, h.Bounds.Untold = c.Rates, ClaimBatch
	for _, g := range c.grants {
		if !scopes[g.scope] {
			continue
		}
		r := oracle.Record{Kind: oracle.Granted, At: g.at, Actor: g.writer, Scope: g.scope}
		if c.rateOfScope(g.scope).Mode == ratelimit.Exact {
			// By the window in which the statement counted it.
			if last := g.window.Add(time.Minute - time.Microsecond); r.At.After(last) {
				r.At = last
			}
			r.Granted = g.runs
		} else {
			r.Ran = g.runs
		}
		c.result.figures.granted += g.runs
		h.Add(r)
	}
	slices.SortStableFunc(h.Records, func(a, b oracle.Record) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(boolOf(a.Kind != oracle.Granted), boolOf(b.Kind != oracle.Granted)))
	})
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
