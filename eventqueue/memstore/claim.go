package memstore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// Claim implements eventqueue.ClaimStore. What it returns is by id.
func (s *Store) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.Known, lockTimeout time.Duration) ([]eventqueue.Found, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	found := make([]eventqueue.Found, 0, len(ids))
	err := s.atOnce(ctx, OpClaim, func() {
		now := s.db.now()
		for _, id := range ids {
			if r, ok := s.db.events[id]; ok {
				found = append(found, s.db.claim(r, known, lockTimeout, now))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// claim answers for one row, and takes its lock when it may be taken. A row that
// is being written is answered for as it is committed, and left.
func (db *database) claim(r *record, known eventqueue.Known, lockTimeout time.Duration, now time.Time) eventqueue.Found {
	f := eventqueue.Found{
		Event: eventqueue.Event{ID: r.ID, Canvas: r.Canvas, Module: r.Module, Name: r.Name, Modifier: r.Modifier,
			DelayUntil: r.DelayUntil},
		Facts: machine.Facts{
			Present: true,
			Rule:    db.rule(r.scope()),
			Delay:   r.DelayUntil.Sub(now),
			Known:   knows(known, &r.Row),
			Waits:   r.Line == lineWaits || r.Line == lineLater,
		},
		InLine: r.Line == lineTurn,
	}
	if !r.LockedAt.IsZero() {
		f.Facts.LockRemaining = r.LockedAt.Add(lockTimeout).Sub(now)
		f.Facts.Lock = machine.LockStale
		if f.Facts.LockRemaining > 0 {
			f.Facts.Lock = machine.LockHeld
		}
	}
	if r.writer != nil || f.Facts.Rule != machine.NoRule || !f.Facts.Known || f.Facts.Delay > 0 || f.Facts.Waits ||
		!unlocked(&r.Row, lockTimeout, now) {
		return f
	}
	db.update(r, func(row *Row) {
		if !row.LockedAt.IsZero() {
			row.Retries++ // I9: a lock that expired was a failed attempt
		}
		row.LockedAt = now
		row.Attempts++
	})
	f.Facts.Claimed = true
	f.Attempt, f.Unique, f.Limited = r.Attempts, r.UniqueFor > 0, db.limited(r.scope())
	f.Exact = db.exact(r.scope())
	f.Event.Retries, f.Event.EnqueuedAt, f.Event.Value = int(r.Retries), r.EnqueuedAt, json.RawMessage(r.Value)
	return f
}

// unlocked tells whether a row has no lock, or one that has expired.
func unlocked(r *Row, lockTimeout time.Duration, now time.Time) bool {
	return r.LockedAt.IsZero() || !r.LockedAt.After(now.Add(-lockTimeout.Truncate(time.Microsecond)))
}

func knows(known eventqueue.Known, r *Row) bool {
	return slices.Contains(known.Everywhere, r.Handler()) ||
		slices.Contains(known.OnCanvas, eventqueue.CanvasHandler{Canvas: r.Canvas, Key: r.Handler()})
}

// holds is the fence (I5): the token is the claim's, and the lock was not given
// back under the same token.
func holds(r *Row, c eventqueue.Claim) bool {
	return r.ID == c.Event && r.Attempts == c.Attempt && !r.LockedAt.IsZero()
}

// Renew implements eventqueue.ClaimStore.
func (s *Store) Renew(ctx context.Context, claims []eventqueue.Claim) (eventqueue.Written, error) {
	var written eventqueue.Written
	err := s.atOnce(ctx, OpRenew, func() {
		now := s.db.now()
		for _, c := range claims {
			r, ok := s.db.events[c.Event]
			switch {
			case !ok || !holds(&r.Row, c):
				written.Lost = append(written.Lost, c.Event)
			case r.writer == nil:
				s.db.update(r, func(row *Row) { row.LockedAt = now })
				written.Done = append(written.Done, c.Event)
			}
		}
	})
	if err != nil {
		return eventqueue.Written{}, err
	}
	return written, nil
}
