package memstore

import (
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// Unclaimed implements eventqueue.EmitStore. It reads all events of a scope.
func (s *Store) Unclaimed(ctx context.Context, asked []eventqueue.Unanswered) (found []eventqueue.Notification, err error) {
	err = s.atOnce(ctx, OpUnclaimed, func() {
		now := s.db.now()
		var rows []*Row
		for _, a := range asked {
			oldest, newest := now.Add(-a.Oldest.Truncate(time.Microsecond)), now.Add(-a.Newest.Truncate(time.Microsecond))
			for _, r := range s.db.events {
				if r.scope() == a.Scope && r.LockedAt.IsZero() && !r.NotifiedAt.IsZero() &&
					!r.NotifiedAt.Before(oldest) && !r.NotifiedAt.After(newest) {
					rows = append(rows, &r.Row)
				}
			}
		}
		slices.SortFunc(rows, func(a, b *Row) int { return int(a.ID - b.ID) })
		first := map[group]bool{}
		for _, row := range rows {
			if row.Group == groupWaiting {
				at := row.groupAt(stageKey)
				if first[at] {
					continue
				}
				first[at] = true
			}
			found = append(found, eventqueue.Notification{Event: row.ID, Canvas: row.Canvas})
		}
	})
	return resultOf(found, err)
}
