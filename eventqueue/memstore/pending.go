package memstore

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// MarkPending implements eventqueue.PendingStore.
func (s *Store) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	return s.atOnce(ctx, OpMarkPending, func() {
		if s.markPending(ids) {
			s.db.wake()
		}
	})
}

// LeavePending implements maintenance.RelayStore.
func (s *Store) LeavePending(ctx context.Context, ids []eventqueue.EventID) error {
	return s.atOnce(ctx, OpLeavePending, func() { s.markPending(ids) })
}

// markPending reports whether it has marked any.
func (s *Store) markPending(ids []eventqueue.EventID) (marked bool) {
	for _, id := range sortedOnce(ids) {
		if r, ok := s.db.free(id); ok {
			s.db.update(r, func(row *Row) { row.NotifiedAt = time.Time{} })
			marked = true
		}
	}
	return marked
}

// TakePending implements eventqueue.PendingStore.
func (s *Store) TakePending(ctx context.Context, ids []eventqueue.EventID) (taken []eventqueue.Notification, err error) {
	err = s.atOnce(ctx, OpTakePending, func() {
		for _, id := range sortedOnce(ids) {
			if r, ok := s.db.free(id); ok && pendingWithin(&r.Row, s.db.now(), eventqueue.MaxRequeue) {
				taken = append(taken, s.db.notify(r))
			}
		}
	})
	return resultOf(taken, err)
}

// TakeDue implements maintenance.RelayStore. While more is due than limit, it goes from
// canvas to canvas.
func (s *Store) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) (taken []eventqueue.Notification, err error) {
	over := func(error) {}
	err = s.atOnce(ctx, OpTakeDue, func() {
		if s.behind {
			taken = s.takeShares(within, limit)
		}
		if rest := limit - len(taken); rest > 0 {
			oldest := s.db.pending(within, nil)
			oldest = oldest[:min(len(oldest), rest)]
			taken = append(taken, s.db.notifyAll(oldest)...)
			s.behind = len(oldest) == rest
		}
		if await != nil && len(taken) > 0 {
			over = await(eventIDs(taken)) // nobody sees anything of it before this ends
		}
	})
	over(err)
	return resultOf(taken, err)
}

func eventIDs(of []eventqueue.Notification) []eventqueue.EventID {
	ids := make([]eventqueue.EventID, len(of))
	for i, n := range of {
		ids[i] = n.Event
	}
	return ids
}

// fewestCanvases is the least number of canvases that takeShares visits.
const fewestCanvases = 256

// takeShares takes an equal number of notifications for each of the next canvases.
func (s *Store) takeShares(within time.Duration, limit int) (taken []eventqueue.Notification) {
	var canvases, due []eventqueue.CanvasID
	for _, r := range s.db.events {
		if r.NotifiedAt.IsZero() && bytes.Compare(r.Canvas[:], s.canvas[:]) > 0 {
			canvases = append(canvases, r.Canvas)
		}
	}
	slices.SortFunc(canvases, func(a, b eventqueue.CanvasID) int { return bytes.Compare(a[:], b[:]) })
	canvases = slices.Compact(canvases)
	most := max(limit, fewestCanvases)
	canvases = canvases[:min(len(canvases), most)]
	now := s.db.now()
	for _, canvas := range canvases {
		if len(due) < limit && slices.ContainsFunc(slices.Collect(maps.Values(s.db.events)), func(r *record) bool {
			return r.Canvas == canvas && pendingWithin(&r.Row, now, within)
		}) {
			due = append(due, canvas)
		}
	}
	switch {
	case len(due) == limit:
		s.canvas = due[limit-1]
	case len(canvases) == most:
		s.canvas = canvases[most-1]
	default:
		s.canvas = eventqueue.CanvasID{}
	}
	for _, canvas := range due {
		share := s.db.pending(within, &canvas)
		taken = append(taken, s.db.notifyAll(share[:min(len(share), limit/len(due))])...)
	}
	return taken
}

// pending returns the free rows of all canvases, or of one, whose notifications are pending
// and due, the earliest first.
func (db *database) pending(within time.Duration, canvas *eventqueue.CanvasID) (due []*record) {
	now := db.now()
	for _, r := range db.events {
		if r.writer == nil && pendingWithin(&r.Row, now, within) && (canvas == nil || r.Canvas == *canvas) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *record) int {
		return cmp.Or(a.DelayUntil.Compare(b.DelayUntil), byID(a, b))
	})
	return due
}

// Sweep implements maintenance.RelayStore.
func (s *Store) Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (swept maintenance.Swept, err error) {
	err = s.atOnce(ctx, OpSweep, func() {
		var page []*record
		page, swept.Next = s.db.page(after, limit, func(*Row) bool { return true })
		swept.Read = len(page)
		now := s.db.now()
		for _, r := range page {
			if s.db.live(&r.Row, now) {
				swept.Live++
			}
			if r.LockedAt.After(now.Add(24*time.Hour)) && len(swept.Ahead) < 10 {
				swept.Ahead = append(swept.Ahead, r.ID)
			}
		}
		swept.Lost = s.takeLost(page, lostAfter)
		swept.Lost = append(swept.Lost, s.repair(page, after, swept.Next, limit)...)
	})
	if err != nil {
		return maintenance.Swept{}, err
	}
	return swept, nil
}

// TakeLost is Sweep for callers that need the lost notifications only.
func (s *Store) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	swept, err := s.Sweep(ctx, after, limit, lostAfter)
	return swept.Lost, swept.Next, err
}

// takeLost takes the free rows whose notifications seem lost.
func (s *Store) takeLost(page []*record, lostAfter time.Duration) (taken []eventqueue.Notification) {
	now := s.db.now()
	for _, r := range page {
		if r.writer == nil && s.db.lost(&r.Row, now, lostAfter) {
			taken = append(taken, s.db.notify(r))
		}
	}
	return taken
}
