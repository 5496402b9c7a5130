package sim

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
	"eventsv2/test/oracle"
)

// drawFeatures draws what a seed has beside the plain queue. Its dice are its own.
func (w *world) drawFeatures() {
	d := newDice(w.seed, "features")
	w.unique, w.chains, w.byHand, w.forges, w.falls = d.chance(0.4), d.chance(0.4), d.chance(0.4), d.chance(0.5), d.chance(0.5)
	w.lastSilence = w.falls && d.chance(0.6)
	if d.chance(0.4) {
		w.rates = 1 + d.IntN(2)
		for range 2 + d.IntN(3) {
			w.mustLimitRate(drawRate(d))
		}
	}
}

// Unique keys.

var uniqueKeys = []string{"once", "twice"}

// keysFree is when an insert may pass: one that waits for another's transaction within
// the database would not know when its turn has come.
func (s *port) keysFree(events []eventqueue.NewEvent) func() time.Time {
	return func() time.Time {
		if s.mem.KeysFree(events) {
			return time.Time{}
		}
		return s.p.w.never()
	}
}

func (w *world) repeated(p *process, id eventqueue.EventID, e *eventqueue.NewEvent, at time.Time) {
	w.mu.Lock()
	w.faults["emit taken for a repeat"]++
	w.mu.Unlock()
	w.add(oracle.Record{Kind: oracle.Repeated, At: at, Actor: p.name, Event: id, Canvas: e.Canvas, UniqueKey: e.UniqueKey})
}

// DeleteKeys implements maintenance.UniqueStore.
func (s *port) DeleteKeys(ctx context.Context, after eventqueue.UniqueKey, limit int) (forgotten int, next eventqueue.UniqueKey, err error) {
	err = s.do(ctx, "DeleteKeys", fmt.Sprint(after), func() (string, error) {
		forgotten, next, err = s.mem.DeleteKeys(ctx, after, limit)
		return fmt.Sprint(forgotten), err
	})
	return onlyIf(forgotten, err), onlyIf(next, err), err
}

// Rows by hand.

// foreign is the name of a handler that nobody has.
const foreign = "foreign"

// insertRows writes rows with nothing but SQL, with whatever values the table lets in.
func (p *process) insertRows(ctx context.Context, d dice) {
	now := time.Now()
	rows := make([]memstore.ByHand, 1+d.IntN(3))
	for i := range rows {
		r := &rows[i]
		r.Canvas, r.Module, r.Name, r.Modifier = eventqueue.CanvasID{byte(d.IntN(4))}, "WORKER", jobs[d.IntN(len(jobs))], "_"
		if d.chance(0.1) {
			r.Name = foreign
		}
		r.Value = []string{"", "null", "no JSON", `"ä€😀"`, "{}"}[d.IntN(5)]
		if d.chance(0.3) {
			r.Retries = []int32{1, 2, 4, 1_000_000}[d.IntN(4)]
		}
		switch d.IntN(5) {
		case 0:
			r.DelayUntil = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Hour)
		case 1:
			r.DelayUntil = now.Add(d.between(-time.Minute, time.Minute)).Truncate(time.Microsecond)
		case 2:
			if d.chance(0.2) {
				r.DelayUntil = time.Date(294276, 12, 31, 0, 0, 0, 0, time.UTC)
			}
		}
		if d.chance(0.3) {
			r.EnqueuedAt = now.Add(d.between(-100*365*24*time.Hour, 10*time.Second)).Truncate(time.Microsecond)
		}
		if d.chance(0.3) {
			r.LockedAt = now.Add(d.between(-2*lockTimeout, lockTimeout)).Truncate(time.Microsecond)
		}
	}
	_ = p.store.insertByHand(ctx, rows) // what fails is the history's to say
}

func (s *port) insertByHand(ctx context.Context, rows []memstore.ByHand) error {
	return s.do(ctx, "INSERT by hand", fmt.Sprint(len(rows)), func() (string, error) {
		ids, err := s.mem.InsertRows(ctx, rows)
		if err != nil {
			return "", err
		}
		w := s.p.w
		w.mu.Lock()
		w.faults["row written by hand"] += len(ids)
		w.mu.Unlock()
		for i, id := range ids {
			r := rows[i]
			w.add(oracle.Record{Kind: oracle.Emitted, Actor: s.p.name, Event: id, Canvas: r.Canvas,
				Handler: eventqueue.HandlerKey{Module: r.Module, Name: r.Name, Modifier: r.Modifier}, Value: r.Value,
				Due: w.row(id).DelayUntil, Retries: int(r.Retries), LockedAt: r.LockedAt, Foreign: r.Name == foreign})
		}
		return fmt.Sprint(ids), nil
	})
}

// hasWork reports whether anything is left that could run, now or within what is
// simulated.
func (w *world) hasWork() bool {
	for _, row := range w.memory.Events() {
		if row.Name != foreign && row.DelayUntil.Before(w.never()) {
			return true
		}
	}
	return false
}

// forgedFrom are ids that no event has.
const forgedFrom eventqueue.EventID = 1 << 40

// forge has the broker deliver what nobody has published: of events that are there,
// whatever they wait for, and of some that never were.
func (n *nemesis) forge() {
	w := n.w
	w.note("nemesis: somebody forges notifications")
	w.faults["notifications forged"]++
	var forged []eventqueue.Notification
	for _, row := range w.memory.Events() {
		if w.dice.chance(0.5) {
			forged = append(forged, eventqueue.Notification{Event: row.ID, Canvas: row.Canvas})
		}
	}
	for _, one := range forged {
		w.add(oracle.Record{Kind: oracle.Published, Actor: "forger", Event: one.Event, Failed: true})
	}
	for i := range 1 + w.dice.IntN(3) {
		forged = append(forged, eventqueue.Notification{Event: forgedFrom + eventqueue.EventID(i), Canvas: eventqueue.CanvasID{1}})
	}
	for _, one := range forged {
		w.notifier.messages = append(w.notifier.messages, &message{notification: one, due: time.Now()})
	}
}
