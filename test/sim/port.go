package sim

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/cronchecker/memcron"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
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
		inserted, err = s.mem.Insert(ctx, in, s.p.fromClockEach(events), announce)
		if err != nil {
			return "", err
		}
		now := s.mem.Now()
		s.p.w.record(in, func() {
			for i, row := range inserted {
				s.p.w.emitted(s.p, row.ID, &events[i], now)
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

// Claim implements eventqueue.ClaimStore.
func (s *port) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.Known, lock time.Duration) (found []eventqueue.Found, err error) {
	err = s.do(ctx, "Claim", fmt.Sprint(ids), func() (string, error) {
		found, err = s.mem.Claim(ctx, ids, known, lock)
		s.p.w.claimed(s.p, found, lock)
		s.p.toClockEach(found)
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

// Runnable implements eventqueue.ClaimStore.
func (s *port) Runnable(ctx context.Context, after eventqueue.Scope, except []eventqueue.CanvasID, lock time.Duration) (events []eventqueue.Event, next eventqueue.Scope, err error) {
	err = s.do(ctx, "Runnable", fmt.Sprint(after, except), func() (string, error) {
		events, next, err = s.mem.Runnable(ctx, after, except, lock)
		events = s.p.w.aloneOf(events)
		return fmt.Sprint(idsOf(events, func(e eventqueue.Event) eventqueue.EventID { return e.ID })), err
	})
	return onlyIf(events, err), onlyIf(next, err), err
}

// TakeTurns implements eventqueue.ClaimStore.
func (s *port) TakeTurns(ctx context.Context, left, arrived []eventqueue.EventID, lockTimeout time.Duration) (turns []eventqueue.Event, err error) {
	err = s.do(ctx, "TakeTurns", fmt.Sprint(left, arrived), func() (string, error) {
		turns, err = s.mem.TakeTurns(ctx, left, arrived, lockTimeout)
		return fmt.Sprint(idsOf(turns, func(e eventqueue.Event) eventqueue.EventID { return e.ID })), err
	})
	return onlyIf(turns, err), err
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

// TakeRate implements eventqueue.RateTaker. There are no rate limits in the simulation.
func (s *port) TakeRate(ctx context.Context, asks []eventqueue.RateAsk) ([]eventqueue.RateAnswer, error) {
	return s.mem.TakeRate(ctx, asks)
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
		lifted.At = s.p.toClock(lifted.At)
		return fmt.Sprintf("removed %t, last %t", lifted.Removed, lifted.Last), err
	})
	return onlyIf(lifted, err), err
}

// TakeWaiting implements eventqueue.RuleStore.
func (s *port) TakeWaiting(ctx context.Context, scope eventqueue.Scope, since time.Time, after eventqueue.EventID, limit int) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.do(ctx, "TakeWaiting", fmt.Sprint(scope, " after ", after), func() (string, error) {
		taken, next, err = s.mem.TakeWaiting(ctx, scope, s.p.fromClock(since), after, limit)
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
