package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/oracle"
)

// The features that some events use, each on canvases of its own. So the events that have
// to be checked together are few, and one history of the oracle holds them all.
const (
	orderingCanvases = 2 // the first ones
	orderingKeys     = 20
	orderingShare    = 5 // one event in so many has an ordering key
	limitedCanvas    = orderingCanvases
	limitedHandler   = "busy"
	limitedMax       = 2
	uniqueCanvas     = limitedCanvas + 1
	uniqueKeys       = 10
	uniqueSeconds    = 3 // how long the key of every other event holds after its end
)

// features gives an event of a form the keys that it is to have, and the canvas on which
// they are checked.
func (f form) features(random *rand.Rand, t *task.Task, canvases []eventqueue.CanvasID) eventqueue.CanvasID {
	switch {
	case f.unique:
		t.UniqueKey, t.UniqueSeconds = fmt.Sprintf("unique-%d", random.IntN(uniqueKeys)), uniqueSeconds*random.IntN(2)
		if t.Do == task.Complete || t.Do == task.Undo {
			t.Do, t.Times = task.Succeed, 0 // how long such a transaction takes to commit is not on record
		}
		return canvases[uniqueCanvas]
	case !f.keyless && random.IntN(orderingShare) == 0:
		t.OrderingKey = fmt.Sprintf("key-%d", random.IntN(orderingKeys))
		return canvases[random.IntN(orderingCanvases)]
	default:
		return canvases[random.IntN(canvasCount)]
	}
}

// repeat is an emit that made no event, because another had its unique key.
type repeat struct {
	of  eventqueue.EventID
	key string
	at  time.Time // when its call began
}

// emitUnique emits and records what was a repeat.
func emitUnique(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	began := time.Now()
	emitted, err := e.queue.EmitUnique(ctx, events...)
	if err == nil {
		e.recordRepeats(events, emitted, began)
	}
	return err
}

func emitUniqueInTx(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	began := time.Now()
	var emitted []eventqueue.Emitted
	err := e.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) (err error) {
		emitted, err = tx.EmitUnique(ctx, events...)
		return err
	})
	if err == nil {
		e.recordRepeats(events, emitted, began)
	}
	return err
}

func (e *emitters) recordRepeats(events []eventqueue.NewEvent, emitted []eventqueue.Emitted, began time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, one := range emitted {
		if !one.New {
			e.repeats[taskOf(events[i]).Tag] = repeat{one.ID, events[i].UniqueKey, began}
		}
	}
}

// taskOf is the task of an event that drawEvent made.
func taskOf(event eventqueue.NewEvent) task.Task {
	t, err := task.Parse(event.Value)
	if err != nil {
		panic(err)
	}
	return t
}

// limitHandler sets the concurrency limit of the run, before anything is emitted.
func (s *stage) limitHandler(ctx context.Context, limits *operate.ConcurrencyLimits) error {
	limit := operate.ConcurrencyLimit{Canvas: s.canvases[limitedCanvas], Module: task.Module, Name: limitedHandler, Max: limitedMax}
	if err := limits.Set(ctx, limit); err != nil {
		return err
	}
	s.limits = append(s.limits, oracle.LimitChange{At: time.Now(), Limit: limit})
	return nil
}

// bond names the events that the oracle has to see together with an event: those of its
// ordering key, of its unique key, or under its limit of either kind. It is empty for most.
func (c *checker) bond(s *story) string {
	if s.entered == nil {
		return ""
	}
	t, err := s.task()
	switch {
	case err != nil:
		return ""
	case s.link():
		return fmt.Sprintf("chain %s", s.entered.parent)
	case s.entered.handler == task.Dispatch():
		return fmt.Sprintf("chain %s", s.id)
	case t.OrderingKey != "":
		return fmt.Sprintf("order %s %s", s.entered.canvas, t.OrderingKey)
	case t.UniqueKey != "":
		return fmt.Sprintf("unique %s %s", s.entered.canvas, t.UniqueKey)
	case c.rateOf(s.entered) != nil:
		return fmt.Sprintf("rate %s %s", s.entered.canvas, s.entered.handler.Name)
	case c.limited(s.entered):
		return fmt.Sprintf("limit %s %s", s.entered.canvas, s.entered.handler.Name)
	default:
		return ""
	}
}

// limited reports whether events such as this one have a limit.
func (c *checker) limited(e *entered) bool {
	return slices.ContainsFunc(c.limits, func(l oracle.LimitChange) bool {
		return l.Limit.Canvas == e.canvas && l.Limit.Name == e.handler.Name
	})
}

// histories splits events into those that the oracle is shown at once. Events with one
// bond stay together, and a history is only longer than oracleChunk where these are more.
func (c *checker) histories(ids []eventqueue.EventID) (all [][]eventqueue.EventID) {
	bonds := map[string][]eventqueue.EventID{}
	var order []string
	var free, bound []eventqueue.EventID
	for _, id := range ids {
		bond := c.bond(c.stories[id])
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
	c.repeatsOf = map[eventqueue.EventID][]repeat{}
	for tag, r := range c.repeats {
		if s := c.stories[r.of]; s == nil || s.entered == nil {
			c.find(nil, unique, "the emit of %q was taken for a repeat of event %s, which never existed", tag, r.of)
			continue
		}
		c.repeatsOf[r.of] = append(c.repeatsOf[r.of], r)
	}
}

// How long the end of an event may take to be seen after it was written: a commit waits
// for the disk. Beside a fault of Postgres it may take longer.
const seenWithin = 2 * time.Second

// reportRepeats adds the emits that were taken for repeats of an event. Of those that began
// while a fault may have kept its end from being seen, nothing is known.
func (c *checker) reportRepeats(h *oracle.History, t *trial) {
	last := t.changes[len(t.changes)-1]
	for _, r := range c.repeatsOf[t.id] {
		began := r.at.Add(-seenWithin)
		if last.op == opDelete && slices.ContainsFunc(c.faults, func(f fault) bool {
			return f.as != oracle.NotifierFault && !f.from.After(r.at) && !f.to.Before(last.at.Add(-echo)) && f.concerns(last.writer)
		}) {
			continue
		}
		h.Add(oracle.Record{Kind: oracle.Repeated, At: began, Actor: slotEmitter, Event: t.id, Canvas: t.entered.canvas, UniqueKey: r.key})
	}
}

// uniqueFor is how long a key certainly holds after the end of its event, as the trigger
// records it: the statement that ends the event reads its clock at its beginning. The oracle
// rounds it up again where it asks how long the key may hold.
func uniqueFor(t task.Task) time.Duration {
	return max(0, time.Duration(t.UniqueSeconds)*time.Second-time.Second+time.Millisecond)
}

// takesBack reports whether a change removed an expired lock with the place of its event
// in its groups, as a claim would do it, and not the end of a run.
func (ch *change) takesBack(holder string) bool {
	return ch.op == opUpdate && ch.old.lockedMicros != 0 && ch.new.lockedMicros == 0 && ch.new.dueMicros == ch.old.dueMicros &&
		!ch.at.Before(micros(ch.old.lockedMicros).Add(lockTimeout)) && (ch.writer != holder || ch.new.retries > ch.old.retries)
}
