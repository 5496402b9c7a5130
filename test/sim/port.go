package sim

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/cronchecker/memcron"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
	"eventsv2/test/oracle"
)

// port is the database as a process sees it: through the gate, and with every
// change written into the history in the step in which it happens.
type port struct {
	p   *process
	mem *memstore.Store
}

var (
	_ eventqueue.EmitStore  = (*port)(nil)
	_ eventqueue.ClaimStore = (*port)(nil)
	_ eventqueue.RelayStore = (*port)(nil)
	_ eventqueue.RuleStore  = (*port)(nil)
)

func (s *port) do(ctx context.Context, op, key string, f func() (string, error)) error {
	return s.p.do(ctx, call{to: database, op: op, key: key}, f)
}

// beforeCron takes the statements of the cron checker through the gate; the
// others pass it in the methods below.
func (s *port) beforeCron(ctx context.Context, op memstore.Op) error {
	if op != memcron.OpLoad && op != memcron.OpLock {
		return nil
	}
	return s.do(ctx, string(op), "", func() (string, error) { return "", nil })
}

// Insert implements eventqueue.EmitStore.
func (s *port) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, announce eventqueue.Announce) (inserted []eventqueue.Inserted, err error) {
	key := fmt.Sprintf("%d×%s", len(events), events[0].Handler())
	err = s.do(ctx, "Insert", key, func() (string, error) {
		inserted, err = s.mem.Insert(ctx, in, events, announce)
		if err != nil {
			return "", err
		}
		s.p.w.record(in, func() {
			for i, row := range inserted {
				s.p.w.emitted(s.p, row.ID, &events[i])
			}
		})
		return fmt.Sprint(idsOf(inserted, func(r eventqueue.Inserted) eventqueue.EventID { return r.ID })), nil
	})
	return onlyIf(inserted, err), err
}

// InsertSQL is not simulated: there is no database/sql in memory.
func (s *port) InsertSQL(context.Context, *sql.Tx, []eventqueue.NewEvent, eventqueue.Announce) ([]eventqueue.Inserted, error) {
	return nil, memstore.ErrNoSQL
}

// InTx implements eventqueue.EmitStore.
func (s *port) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // after a commit it does nothing
	if err := f(ctx, tx); err != nil {
		return err
	}
	return s.commit(ctx, tx)
}

func (s *port) begin(ctx context.Context) (tx *memstore.Tx, err error) {
	err = s.do(ctx, "Begin", "", func() (string, error) {
		tx, err = s.mem.Begin(ctx)
		return "", err
	})
	if err != nil && tx != nil {
		_ = tx.Rollback(ctx) // nobody knows of it
	}
	return tx, err
}

func (s *port) commit(ctx context.Context, tx *memstore.Tx) error {
	return s.do(ctx, "Commit", "", func() (string, error) {
		err := tx.Commit(ctx)
		if err == nil {
			s.p.w.committed(tx)
		}
		return "", err
	})
}

// Owe implements eventqueue.OwedStore.
func (s *port) Owe(ctx context.Context, ids []eventqueue.EventID) error {
	return s.do(ctx, "Owe", fmt.Sprint(ids), func() (string, error) { return "", s.mem.Owe(ctx, ids) })
}

// TakeOwed implements eventqueue.OwedStore.
func (s *port) TakeOwed(ctx context.Context, ids []eventqueue.EventID) (taken []eventqueue.Notification, err error) {
	err = s.do(ctx, "TakeOwed", fmt.Sprint(ids), func() (string, error) {
		taken, err = s.mem.TakeOwed(ctx, ids)
		return eventsOf(taken), err
	})
	return onlyIf(taken, err), err
}

// Claim implements eventqueue.ClaimStore. It waits until the process has no
// answers at the gate: see Observe in worker.go.
func (s *port) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.Known, lock time.Duration) (found []eventqueue.Found, err error) {
	c := call{to: database, op: "Claim", key: fmt.Sprint(ids), ready: s.p.answered}
	err = s.p.do(ctx, c, func() (string, error) {
		found, err = s.mem.Claim(ctx, ids, known, lock)
		s.p.w.claimed(s.p, found, lock)
		return describeFound(found), err
	})
	return onlyIf(found, err), err
}

func describeFound(found []eventqueue.Found) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, " %s:", f.Event.ID)
		switch {
		case f.Facts.Claimed:
			fmt.Fprintf(&b, "token %d", f.Attempt)
		default:
			fmt.Fprintf(&b, "rule %d, delay %s, lock %d, known %t", f.Facts.Rule, max(f.Facts.Delay, 0), f.Facts.Lock, f.Facts.Known)
		}
	}
	return b.String()
}

// Finish implements eventqueue.ClaimStore.
func (s *port) Finish(ctx context.Context, in eventqueue.DB, ends []eventqueue.End, keep bool) (written eventqueue.Written, err error) {
	ends = slices.SortedFunc(slices.Values(ends), func(a, b eventqueue.End) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Attempt, b.Attempt))
	})
	var key strings.Builder
	for _, end := range ends {
		fmt.Fprintf(&key, " %s#%d:%s", end.Event, end.Attempt, end.Label)
	}
	err = s.do(ctx, "Finish", key.String(), func() (string, error) {
		written, err = s.mem.Finish(ctx, in, ends, keep)
		if err != nil {
			return "", err
		}
		s.p.w.refused(s.p, ends, written.Lost)
		s.p.w.record(in, func() { s.p.w.written(s.p, ends, written.Done, in != nil) })
		return fmt.Sprintf("done %v, lost %v", written.Done, written.Lost), nil
	})
	return written, err
}

// Renew implements eventqueue.ClaimStore.
func (s *port) Renew(ctx context.Context, claims []eventqueue.Claim) (written eventqueue.Written, err error) {
	claims = slices.SortedFunc(slices.Values(claims), func(a, b eventqueue.Claim) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Attempt, b.Attempt))
	})
	err = s.do(ctx, "Renew", fmt.Sprint(claims), func() (string, error) {
		written, err = s.mem.Renew(ctx, claims)
		s.p.w.renewed(s.p, claims, written.Done)
		return fmt.Sprintf("done %v, lost %v", written.Done, written.Lost), err
	})
	return written, err
}

// TakeDue implements eventqueue.RelayStore.
func (s *port) TakeDue(ctx context.Context, within time.Duration, limit int) (taken []eventqueue.Notification, err error) {
	err = s.do(ctx, "TakeDue", "", func() (string, error) {
		taken, err = s.mem.TakeDue(ctx, within, limit)
		return eventsOf(taken), err
	})
	return onlyIf(taken, err), err
}

// TakeLost implements eventqueue.RelayStore.
func (s *port) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, quiet, lock time.Duration) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.do(ctx, "TakeLost", after.String(), func() (string, error) {
		taken, next, err = s.mem.TakeLost(ctx, after, limit, quiet, lock)
		return eventsOf(taken), err
	})
	return onlyIf(taken, err), onlyIf(next, err), err
}

// Listen implements eventqueue.RelayStore.
func (s *port) Listen(ctx context.Context, wake func()) error {
	if err := s.do(ctx, "Listen", "", func() (string, error) { return "", nil }); err != nil {
		return err
	}
	return s.mem.Listen(ctx, wake)
}

// AddRule implements eventqueue.RuleStore.
func (s *port) AddRule(ctx context.Context, t eventqueue.RuleType, scope eventqueue.Scope) (added bool, err error) {
	err = s.do(ctx, "AddRule", fmt.Sprint(t, " of ", scope), func() (string, error) {
		added, err = s.mem.AddRule(ctx, t, scope)
		return fmt.Sprintf("added %t", added), err
	})
	return onlyIf(added, err), err
}

// LiftRule implements eventqueue.RuleStore.
func (s *port) LiftRule(ctx context.Context, t eventqueue.RuleType, scope eventqueue.Scope) (lifted eventqueue.Lifted, err error) {
	err = s.do(ctx, "LiftRule", fmt.Sprint(t, " of ", scope), func() (string, error) {
		lifted, err = s.mem.LiftRule(ctx, t, scope)
		return fmt.Sprintf("removed %t, last %t", lifted.Removed, lifted.Last), err
	})
	return onlyIf(lifted, err), err
}

// TakeWaiting implements eventqueue.RuleStore.
func (s *port) TakeWaiting(ctx context.Context, scope eventqueue.Scope, since time.Time, after eventqueue.EventID, limit int) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.do(ctx, "TakeWaiting", fmt.Sprint(scope, " after ", after), func() (string, error) {
		taken, next, err = s.mem.TakeWaiting(ctx, scope, since, after, limit)
		return eventsOf(taken), err
	})
	return onlyIf(taken, err), onlyIf(next, err), err
}

// onlyIf is what a caller may see: nothing when there was an error.
func onlyIf[T any](value T, err error) T {
	if err != nil {
		var nothing T
		return nothing
	}
	return value
}

func idsOf[T any](from []T, id func(T) eventqueue.EventID) []eventqueue.EventID {
	ids := make([]eventqueue.EventID, len(from))
	for i, one := range from {
		ids[i] = id(one)
	}
	return ids
}

func eventsOf(notifications []eventqueue.Notification) string {
	return fmt.Sprint(idsOf(notifications, func(n eventqueue.Notification) eventqueue.EventID { return n.Event }))
}

// ringer is the broker as a process sees it.
type ringer struct{ p *process }

var _ eventqueue.Notifier = ringer{}

func (r ringer) do(ctx context.Context, op, key string, ready func() bool, f func() (string, error)) error {
	return r.p.do(ctx, call{to: broker, op: op, key: key, ready: ready}, f)
}

// Publish implements eventqueue.Publisher.
func (r ringer) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	done := false
	err := r.do(ctx, "Publish", eventsOf(notifications), nil, func() (string, error) {
		done = true
		r.p.w.bell.publish(notifications)
		r.p.w.rung(r.p, oracle.Published, notifications, false)
		return "", nil
	})
	if err != nil {
		r.p.w.publishFailed(r.p, notifications, done)
	}
	return err
}

// Pull implements eventqueue.Receiver.
func (r ringer) Pull(ctx context.Context, most int) (pulled []eventqueue.Delivery, err error) {
	w := r.p.w
	ready := func() bool { return w.bell.ready(time.Now()) }
	err = r.do(ctx, "Pull", fmt.Sprint(most), ready, func() (string, error) {
		pulled = w.bell.pull(most, w.mayBeAbandoned())
		notifications := make([]eventqueue.Notification, len(pulled))
		for i, d := range pulled {
			notifications[i] = d.Notification
		}
		w.rung(r.p, oracle.Delivered, notifications, false)
		return eventsOf(notifications), nil
	})
	return onlyIf(pulled, err), err
}

// Ack implements eventqueue.Receiver.
func (r ringer) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	return r.settle(ctx, "Ack", deliveries, func(d eventqueue.Delivery) { r.p.w.bell.ack([]eventqueue.Delivery{d}) })
}

// Requeue implements eventqueue.Receiver.
func (r ringer) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	return r.settle(ctx, fmt.Sprint("Requeue after ", after), deliveries, func(d eventqueue.Delivery) { r.p.w.bell.requeue(d, after) })
}

// settle takes the deliveries through the gate one by one, so that it does not
// matter how many of them the worker's answerer had found together.
func (r ringer) settle(ctx context.Context, op string, deliveries []eventqueue.Delivery, act func(eventqueue.Delivery)) error {
	if strings.HasPrefix(op, "Requeue") {
		deliveries = slices.SortedFunc(slices.Values(deliveries), func(a, b eventqueue.Delivery) int { return cmp.Compare(a.Event, b.Event) })
	}
	r.p.w.answering(r.p, 1)
	defer r.p.w.answering(r.p, -1)
	var failures []error
	for _, d := range deliveries {
		failures = append(failures, r.do(ctx, op, d.Event.String(), nil, func() (string, error) {
			act(d)
			return "", nil
		}))
	}
	return errors.Join(failures...)
}
