package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/oracle"
)

// What follows is called by one who has passed the gate, in the same step, so
// that the history has the order in which things happened.

// record writes at once what was written outside of a transaction, and what was
// written in one when it commits.
func (w *world) record(in eventqueue.DB, write func()) {
	if tx := transactionOf(in); tx != nil {
		tx.writes = append(tx.writes, write)
		return
	}
	write()
}

// emittedIn keeps what was emitted in a transaction until it commits, and what keys it holds.
func (w *world) emittedIn(in eventqueue.DB, events []eventqueue.NewEvent, inserted []eventqueue.Inserted) {
	tx := transactionOf(in)
	if tx == nil {
		return
	}
	tx.emits = append(tx.emits, inserted...)
	for _, e := range events {
		if e.UniqueKey != "" {
			tx.keys[eventqueue.UniqueKey{Canvas: e.Canvas, Key: e.UniqueKey}] = true
		}
	}
}

// unanswered records events that are committed and that nobody but their emitter knows of, which was
// not answered. What an emit has replaced is known for longer.
func (w *world) unanswered(p *process, emits []eventqueue.Inserted) {
	for _, row := range emits {
		if row.MustNotify && !row.Repeat {
			w.mu.Lock()
			w.faults["emit committed and not answered"]++
			w.mu.Unlock()
			w.add(oracle.Record{Kind: oracle.EmitUnanswered, Actor: p.name, Event: row.ID})
		}
	}
}

// row is a committed row, or the zero Row.
func (w *world) row(id eventqueue.EventID) row { return w.tables.event(id) }

func (w *world) emitted(p *process, id eventqueue.EventID, e *eventqueue.NewEvent, now time.Time) {
	r := oracle.Record{Kind: oracle.Emitted, Actor: p.name, Event: id, Canvas: e.Canvas, Handler: e.Handler(),
		Value: string(e.Value), OrderingKey: e.OrderingKey, UniqueKey: e.UniqueKey, UniqueMode: e.UniqueMode, UniqueFor: e.UniqueFor,
		Due: meant(e.Value, now, w.row(id).DelayUntil)}
	if e.UniqueMode != "" {
		r.KeyTaken = now
	}
	if e.MaxWait > 0 {
		r.Due = earliest(r.Due, now.Add(e.MaxWait))
	}
	w.family(&r)
	w.add(r)
}

func (w *world) claimed(p *process, found []worker.ClaimResult) {
	for _, f := range found {
		if f.Facts.Claimed {
			w.add(oracle.Record{Kind: oracle.Claimed, Actor: p.name, Event: f.Event.ID, Attempt: f.Attempt,
				Retries: f.Event.Retries, LockTimeout: lockTimeout, LockedAt: w.row(f.Event.ID).LockedAt})
		}
	}
}

func (w *world) renewed(p *process, claims []worker.Claim, done []eventqueue.EventID, together int) {
	for _, id := range done {
		c := claims[w.which(id, len(claims), func(i int) worker.Claim { return claims[i] })]
		w.add(oracle.Record{Kind: oracle.Renewed, Actor: p.name, Event: id, Attempt: c.Attempt, Together: together})
	}
}

func (w *world) written(p *process, ends []worker.Completion, done []eventqueue.EventID, inTx bool) {
	for _, id := range done {
		end := ends[w.which(id, len(ends), func(i int) worker.Claim { return ends[i].Claim })]
		r := oracle.Record{Kind: oracle.Written, At: now(), Actor: p.name, Event: id, Attempt: end.Attempt, Label: end.Label, InTx: inTx}
		if row := w.row(id); row.ID != 0 {
			r.Due = row.DelayUntil
			switch end.Label {
			case machine.Released:
			case machine.OverLimit: // unless its limit was raised meanwhile
				r.Due = earliest(r.Due, r.At.Add(end.Delay))
			default:
				r.Due = r.At.Add(end.Delay) // what was meant, whatever the row says
			}
		}
		w.failDispatch(p, &end)
		w.add(r)
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// which finds the claim of an event that was written. A process may hold two
// claims of one event, of which at most the newest is good.
func (w *world) which(id eventqueue.EventID, n int, claim func(int) worker.Claim) int {
	found := -1
	for i := range n {
		if c := claim(i); c.Event == id && (found < 0 || c.Attempt > claim(found).Attempt) {
			found = i
		}
	}
	return found
}

// refused records the ends that the fence refused: where a process handed in two
// of one event, the older one.
func (w *world) refused(p *process, ends []worker.Completion, lost []eventqueue.EventID) {
	for _, id := range lost {
		for i := range ends {
			if ends[i].Event == id {
				w.add(oracle.Record{Kind: oracle.Refused, Actor: p.name, Event: id, Attempt: ends[i].Attempt, Label: ends[i].Label})
				break
			}
		}
	}
}

func (w *world) notified(p *process, kind oracle.Kind, notifications []eventqueue.Notification, failed bool) {
	for _, n := range notifications {
		if n.Event < forgedFrom {
			w.add(oracle.Record{Kind: kind, Actor: p.name, Event: n.Event, Failed: failed})
		}
	}
}

// publishFailed marks the publishes of a call as failed, whether or not it had
// happened.
func (w *world) publishFailed(p *process, notifications []eventqueue.Notification, done bool) {
	if !done {
		return // nothing went out, and that costs nobody anything
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range notifications {
		for i := len(w.history.Records) - 1; i >= 0; i-- {
			r := &w.history.Records[i]
			if r.Kind == oracle.Published && r.Event == n.Event && r.Actor == p.name {
				r.Failed = true
				break
			}
		}
	}
}

// mayBeAbandoned tells which events are locked and have failed before, or have lost
// their locks with their turns: who claims them may end them without a run.
func (w *world) mayBeAbandoned() func(eventqueue.EventID) bool {
	risky := map[eventqueue.EventID]bool{}
	for _, row := range w.tables.rows() {
		if row.Locked && int(row.Retries) >= w.leastRetries || int(row.Retries) > w.leastRetries {
			risky[row.ID] = true
		}
	}
	return func(id eventqueue.EventID) bool { return risky[id] }
}

// aloneOf is the first of the events when it may be an abandoned one, or else
// those that cannot be.
func (w *world) aloneOf(events []eventqueue.Event) []eventqueue.Event {
	alone := w.mayBeAbandoned()
	if len(events) > 0 && alone(events[0].ID) {
		return events[:1]
	}
	return slices.DeleteFunc(events, func(e eventqueue.Event) bool { return alone(e.ID) })
}

func (w *world) repeated(p *process, id eventqueue.EventID, e *eventqueue.NewEvent, at time.Time) {
	w.mu.Lock()
	w.faults["emit taken for a repeat"]++
	w.mu.Unlock()
	w.add(oracle.Record{Kind: oracle.Repeated, At: at, Actor: p.name, Event: id, Canvas: e.Canvas, UniqueKey: e.UniqueKey, UniqueMode: e.UniqueMode})
}

// replaced records an emit that has given its value and its time to the event that waits; last is what none replaces in the
// same transaction.
func (w *world) replaced(p *process, id eventqueue.EventID, e *eventqueue.NewEvent, at time.Time, last bool) {
	row := w.row(id)
	r := oracle.Record{Kind: oracle.Replaced, At: at, Actor: p.name, Event: id, Canvas: e.Canvas, Value: string(e.Value),
		UniqueKey: e.UniqueKey, UniqueMode: e.UniqueMode, MaxWait: e.MaxWait, Due: meant(e.Value, at, row.DelayUntil)}
	if last {
		r.RowDue = row.DelayUntil
	}
	w.mu.Lock()
	w.faults["event replaced while it waited"]++
	w.mu.Unlock()
	w.add(r)
}

func (w *world) limitChanged(limit operate.ConcurrencyLimit) {
	now := now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults["concurrency limit changed"]++
	w.history.Limits = append(w.history.Limits, oracle.LimitChange{At: now, Limit: limit})
}

// takingBack records the locks that are gone when an operation that gives turns has
// happened: such an operation ends no run, so they had expired.
func (w *world) takingBack(p *process) (done func()) {
	w.tables.forgetUnlocked()
	return func() {
		for _, id := range w.tables.takeUnlocked() {
			w.faults["turn of a dead run taken back"]++
			w.add(oracle.Record{Kind: oracle.TakenBack, Actor: p.name, Event: id, Retries: int(w.row(id).Retries), LockTimeout: lockTimeout})
		}
	}
}

func (w *world) rateChanged(limit operate.RateLimit) {
	now := now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults["rate limit changed"]++
	w.history.Rates = append(w.history.Rates, oracle.RateChange{At: now, Limit: limit})
}

// stored records the outputs that a call has stored.
func (w *world) stored(p *process) {
	kept := map[gridOutput]bool{}
	for _, o := range w.tables.gridOutputs() {
		if kept[o] = true; !w.outputs[o] {
			var output string
			must(json.Unmarshal([]byte(o.Output), &output))
			name, _, _ := strings.Cut(output, "#")
			w.add(oracle.Record{Kind: oracle.ActionStored, Actor: p.name, Event: o.Event, Actions: []string{name}, Value: output})
		}
	}
	w.outputs = kept
}
