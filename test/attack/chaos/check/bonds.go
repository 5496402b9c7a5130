package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// bond names the events that the oracle has to see together with an event: those of its
// ordering key, of its unique key, or under its limit of either kind. It is empty for most.
func (c *checker) bond(s *record.Trace) string {
	if s.Entered == nil {
		return ""
	}
	t, err := taskOf(s)
	switch {
	case err != nil:
		return ""
	case link(s):
		return fmt.Sprintf("chain %s", s.Entered.Parent)
	case s.Entered.Handler == task.Dispatch():
		return fmt.Sprintf("chain %s", s.ID)
	case t.OrderingKey != "":
		return fmt.Sprintf("order %s %s", s.Entered.Canvas, t.OrderingKey)
	case t.UniqueKey != "":
		return fmt.Sprintf("unique %s %s", s.Entered.Canvas, t.UniqueKey)
	case c.rateOf(s.Entered) != nil:
		return fmt.Sprintf("rate %s %s", s.Entered.Canvas, s.Entered.Handler.Name)
	case c.limited(s.Entered):
		return fmt.Sprintf("limit %s %s", s.Entered.Canvas, s.Entered.Handler.Name)
	default:
		return ""
	}
}

// limited reports whether events such as this one have a limit.
func (c *checker) limited(e *record.Entered) bool {
	return slices.ContainsFunc(c.Limits, func(l oracle.LimitChange) bool {
		return l.Limit.Canvas == e.Canvas && l.Limit.Name == e.Handler.Name
	})
}

// histories splits events into those that the oracle is shown at once. Events with one
// bond stay together, and a history is only longer than oracleChunk where these are more.
func (c *checker) histories(ids []eventqueue.EventID) (all [][]eventqueue.EventID) {
	bonds := map[string][]eventqueue.EventID{}
	var order []string
	var free, bound []eventqueue.EventID
	for _, id := range ids {
		bond := c.bond(c.traces[id])
		if bond == "" {
			free = append(free, id)
			continue
		}
		if bonds[bond] == nil {
			order = append(order, bond)
		}
		bonds[bond] = append(bonds[bond], id)
	}
	for _, bond := range order {
		c.countFeature(bond, len(bonds[bond]))
		if len(bound) > 0 && len(bound)+len(bonds[bond]) > oracleChunk {
			all, bound = append(all, bound), nil
		}
		bound = append(bound, bonds[bond]...)
	}
	if len(bound) > 0 {
		all = append(all, bound)
	}
	return slices.AppendSeq(all, slices.Chunk(free, oracleChunk))
}

func (c *checker) countFeature(bond string, events int) {
	f := &c.result.figures
	switch {
	case strings.HasPrefix(bond, "order "):
		f.ordered += events
	case strings.HasPrefix(bond, "unique "):
		f.unique += events
	case strings.HasPrefix(bond, "rate "):
		f.rated += events
	case strings.HasPrefix(bond, "chain "):
		f.chained += events
	default:
		f.limited += events
	}
}

// sortRepeats sorts the repeats by the events that they repeat.
func (c *checker) sortRepeats() {
	c.repeatsOf = map[eventqueue.EventID][]Repeat{}
	for tag, r := range c.Repeats {
		if s := c.traces[r.Of]; s == nil || s.Entered == nil {
			c.find(nil, unique, "the emit of %q was taken for a repeat of event %s, which never existed", tag, r.Of)
			continue
		}
		c.repeatsOf[r.Of] = append(c.repeatsOf[r.Of], r)
	}
}

// How long the end of an event may take to be seen after it was written: a commit waits
// for the disk. Beside a fault of Postgres it may take longer.
const seenWithin = 2 * time.Second

// reportRepeats adds the emits that were taken for repeats of an event. Of those that began
// while a fault may have kept its end from being seen, nothing is known.
func (c *checker) reportRepeats(h *oracle.History, t *record.Event) {
	last := t.Changes[len(t.Changes)-1]
	for _, r := range c.repeatsOf[t.ID] {
		began := r.At.Add(-seenWithin)
		if last.Op == record.Delete && slices.ContainsFunc(c.faults, func(f fault) bool {
			return f.as != oracle.NotifierFault && !f.from.After(r.At) && !f.to.Before(last.At.Add(-echo)) && f.concerns(last.Writer)
		}) {
			continue
		}
		h.Add(oracle.Record{Kind: oracle.Repeated, At: began, Actor: SlotEmitter, Event: t.ID, Canvas: t.Entered.Canvas, UniqueKey: r.Key})
	}
}

// uniqueFor is how long a key certainly holds after the end of its event, as the trigger
// Records it: the statement that ends the event reads its clock at its beginning. The oracle
// rounds it up again where it asks how long the key may hold.
func uniqueFor(t task.Task) time.Duration {
	return max(0, time.Duration(t.UniqueSeconds)*time.Second-time.Second+time.Millisecond)
}
