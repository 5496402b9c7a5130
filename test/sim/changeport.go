package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/oracle"
)

// LastQueued implements operate.SelectStore.
func (s *port) LastQueued(ctx context.Context) (last eventqueue.EventID, err error) {
	err = s.do(ctx, "LastQueued", "", func() (string, error) {
		last, err = s.db.LastQueued(ctx)
		return last.String(), err
	})
	return onlyIf(last, err), err
}

// Select implements operate.SelectStore.
func (s *port) Select(ctx context.Context, filter operate.EventFilter, after, last eventqueue.EventID, limit int) (ids []eventqueue.EventID, next eventqueue.EventID, err error) {
	err = s.do(ctx, "Select", fmt.Sprint(after, last), func() (string, error) {
		ids, next, err = s.db.Select(ctx, filter, after, last, limit)
		return fmt.Sprint(ids), err
	})
	return onlyIf(ids, err), onlyIf(next, err), err
}

// Remove implements operate.ChangeStore. With a place in a group, a turn of others that have died may go as well.
func (s *port) Remove(ctx context.Context, ids []eventqueue.EventID, cancellation *operate.Cancellation) (results []operate.Changed, advanced []eventqueue.Event, err error) {
	err = s.do(ctx, "Remove", fmt.Sprint(ids), func() (string, error) {
		defer s.p.w.takingBack(s.p)()
		results, advanced, err = s.db.Remove(ctx, ids, cancellation)
		byID(advanced)
		s.p.w.cancelled(s.p, results)
		return describeChanges(results), err
	})
	return onlyIf(results, err), onlyIf(advanced, err), err
}

// Edit implements operate.ChangeStore.
func (s *port) Edit(ctx context.Context, edit operate.Edit, ids []eventqueue.EventID) (results []operate.Changed, err error) {
	err = s.do(ctx, "Edit", fmt.Sprint(ids), func() (string, error) {
		if !edit.DelayUntil.IsZero() {
			edit.DelayUntil = s.p.fromClock(edit.DelayUntil)
		}
		results, err = s.db.Edit(ctx, edit, ids)
		s.p.w.changed(s.p, "event edited", edit, results)
		return describeChanges(results), err
	})
	return onlyIf(results, err), err
}

// Requeue implements operate.ChangeStore.
func (s *port) Requeue(ctx context.Context, ids []eventqueue.EventID) (results []operate.Changed, err error) {
	err = s.do(ctx, "Requeue", fmt.Sprint(ids), func() (string, error) {
		results, err = s.db.Requeue(ctx, ids)
		var now time.Duration
		s.p.w.changed(s.p, "event tried now", operate.Edit{Delay: &now}, results)
		return describeChanges(results), err
	})
	return onlyIf(results, err), err
}

func describeChanges(results []operate.Changed) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, " %s:%s", r.ID, r.Result)
	}
	return b.String()
}

// cancelled records the events that were.
func (w *world) cancelled(p *process, results []operate.Changed) {
	for _, r := range results {
		w.countChange(r, "event cancelled")
		switch r.Result {
		case operate.ChangeDone:
			w.add(oracle.Record{Kind: oracle.Cancelled, Actor: p.name, Event: r.ID, LockTimeout: lockTimeout})
		case operate.ChangeEnding:
			w.add(oracle.Record{Kind: oracle.CancelAsked, Actor: p.name, Event: r.ID})
		default:
		}
	}
}

// changed records the events that were edited or requeued: what was meant of their time, and their
// row for the rest.
func (w *world) changed(p *process, what string, edit operate.Edit, results []operate.Changed) {
	for _, r := range results {
		w.countChange(r, what)
		if !r.Done() {
			continue
		}
		record := oracle.Record{Kind: oracle.Changed, Actor: p.name, Event: r.ID, Retries: int(w.row(r.ID).Retries), LockTimeout: lockTimeout,
			Edited: edit.Value != nil, Value: string(edit.Value)}
		now := now()
		switch {
		case edit.Delay != nil:
			record.Due = now.Add(*edit.Delay)
		case !edit.DelayUntil.IsZero():
			record.Due = edit.DelayUntil
			if record.Due.Before(now) {
				record.Due = now
			}
		}
		w.add(record)
	}
}

// countChange counts what an operator did, or could not do.
func (w *world) countChange(r operate.Changed, what string) {
	if r.Result == operate.ChangeRunning {
		what += ": refused, it runs"
	} else if !r.Done() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[what]++
}
