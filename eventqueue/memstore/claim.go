package memstore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/attributes"
)

// Claim implements worker.Store. Its results are in the order of the ids.
func (s *Store) Claim(ctx context.Context, ids []eventqueue.EventID, handlers eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	found := make([]worker.ClaimResult, 0, len(ids))
	err := s.atOnceUnless(ctx, OpClaim, func() error {
		now := s.db.now()
		var free []eventqueue.EventID
		for _, id := range ids {
			if r, ok := s.db.events[id]; ok {
				f, claimable := s.db.check(r, handlers, now)
				if found = append(found, f); claimable {
					free = append(free, id)
				}
			}
		}
		if err := s.refused(OpClaim, free); err != nil {
			return err
		}
		for i := range found {
			if id := found[i].Event.ID; slices.Contains(free, id) {
				s.db.claim(&found[i], s.db.events[id], claim, now)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// check returns the result for one row, and whether it can be claimed. For a row that
// another transaction is writing, the result is that of the committed version.
func (db *database) check(r *record, handlers eventqueue.HandlerSet, now time.Time) (f worker.ClaimResult, claimable bool) {
	f = worker.ClaimResult{
		Event: eventqueue.Event{ID: r.ID, Canvas: r.Canvas, Module: r.Module, Name: r.Name, Modifier: r.Modifier,
			DelayUntil: r.DelayUntil},
		Facts: machine.Facts{
			Present:      true,
			Rule:         db.rule(&r.Row),
			Delay:        r.DelayUntil.Sub(now),
			HandlerKnown: knows(handlers, &r.Row),
			Waits:        r.Group == groupWaiting || r.Group == groupLater || db.needsGroup(&r.Row),
		},
		Grouped: r.Group == groupMayRun,
	}
	if !r.LockedAt.IsZero() {
		f.Facts.LockRemaining = r.LockedAt.Add(db.validFor()).Sub(now)
		f.Facts.Lock = machine.LockStale
		if f.Facts.LockRemaining > 0 {
			f.Facts.Lock = machine.LockHeld
		}
	}
	return f, r.writer == nil && f.Facts.Rule == machine.NoRule && f.Facts.HandlerKnown && f.Facts.Delay <= 0 && !f.Facts.Waits &&
		db.unlocked(&r.Row, now)
}

// claim locks a row that can be claimed, and completes its result.
func (db *database) claim(f *worker.ClaimResult, r *record, claim eventqueue.ClaimID, now time.Time) {
	if r.Attempts == 0 { // the lock was written by hand, which is not reported
		f.Facts.Lock, f.Facts.LockRemaining = machine.LockFree, 0
	}
	db.update(r, func(row *Row) {
		if !row.LockedAt.IsZero() {
			row.takeLock()
		}
		row.LockedAt, row.ClaimID, row.Begun = now, claim, false
		row.Attempts++
	})
	f.ClaimID, f.Company, f.LostRun = claim, int(r.Company), r.LostRun
	f.Facts.Claimed = true
	f.Attempt, f.Unique, f.Limited = r.Attempts, r.UniqueFor > 0, db.limited(r.scope())
	f.Exact, f.Snoozes = db.exact(r.scope()), int(r.Snoozes)
	f.Event.Retries, f.Event.EnqueuedAt = int(r.Retries), r.EnqueuedAt
	if f.ValueApart = len(r.Value) > worker.MaxClaimedValueBytes; !f.ValueApart {
		f.Event.Value = json.RawMessage(r.Value)
	}
	f.Event.ParentID, f.Event.Attributes = r.Parent, attributes.Decode([]byte(r.Attributes))
}

func knows(handlers eventqueue.HandlerSet, r *Row) bool {
	return slices.Contains(handlers.Everywhere, r.Handler()) ||
		slices.Contains(handlers.OnCanvas, eventqueue.CanvasHandler{Canvas: r.Canvas, Key: r.Handler()})
}

// holds is the fence (I5). It reports whether the row has the claim's token and number, and
// the lock was not given back since.
func holds(r *Row, c worker.Claim) bool {
	return r.ID == c.Event && r.Attempts == c.Attempt && r.ClaimID == c.ID && !r.LockedAt.IsZero()
}

// Value implements worker.Store.
func (s *Store) Value(ctx context.Context, claim worker.Claim) (value json.RawMessage, held bool, err error) {
	err = s.atOnce(ctx, OpValue, func() {
		if r, ok := s.db.events[claim.Event]; ok && holds(&r.Row, claim) {
			value, held = json.RawMessage(r.Value), true
		}
	})
	if err != nil {
		return nil, false, err
	}
	return value, held, nil
}

// Renew implements worker.Store.
func (s *Store) Renew(ctx context.Context, claims []worker.Claim) (worker.WriteResult, error) {
	return s.renew(ctx, claims, func(row *Row) {
		if row.Company == 0 {
			row.Begun, row.LostRun = true, false
		}
	})
}

// BeginRuns implements worker.Store.
func (s *Store) BeginRuns(ctx context.Context, claims []worker.Claim, together int) (worker.WriteResult, error) {
	return s.renew(ctx, claims, func(row *Row) {
		row.Begun, row.LostRun, row.Company = true, false, int16(min(together, worker.AnyCompany)) //nolint:gosec // bounded
	})
}

// renew renews the claims that hold, and changes their rows.
func (s *Store) renew(ctx context.Context, claims []worker.Claim, change func(*Row)) (worker.WriteResult, error) {
	var written worker.WriteResult
	err := s.atOnceUnless(ctx, OpRenew, func() error {
		now := s.db.now()
		for _, c := range claims {
			r, ok := s.db.events[c.Event]
			switch {
			case !ok || !holds(&r.Row, c):
				written.Lost = append(written.Lost, c.Event)
			case r.writer == nil:
				written.Done = append(written.Done, c.Event)
			}
		}
		if err := s.refused(OpRenew, written.Done); err != nil {
			return err
		}
		for _, id := range written.Done {
			s.db.update(s.db.events[id], func(row *Row) { row.LockedAt = now; change(row) })
		}
		return nil
	})
	if err != nil {
		return worker.WriteResult{}, err
	}
	return written, nil
}

// GiveBack implements worker.Store. Its results are in the order of the ids.
func (s *Store) GiveBack(ctx context.Context, claim eventqueue.ClaimID, ids []eventqueue.EventID) (given []eventqueue.EventID, err error) {
	err = s.atOnceUnless(ctx, OpGiveBack, func() error {
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			r, ok := s.db.events[id]
			if !ok || claim == 0 || r.ClaimID != claim || r.LockedAt.IsZero() || r.writer != nil {
				continue
			}
			given = append(given, id)
		}
		if err := s.refused(OpGiveBack, given); err != nil {
			return err
		}
		for _, id := range given {
			s.db.update(s.db.events[id], func(row *Row) { row.LockedAt, row.NotifiedAt = time.Time{}, time.Time{} })
		}
		return nil
	})
	return resultOf(given, err)
}
