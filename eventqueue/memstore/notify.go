package memstore

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// pendingWithin reports whether a row's notification is pending and the event is due within
// that time.
func pendingWithin(r *Row, now time.Time, within time.Duration) bool {
	return r.NotifiedAt.IsZero() && !r.DelayUntil.After(now.Add(within))
}

// notify marks a row's notification as published, and returns the notification.
func (db *database) notify(r *record) eventqueue.Notification {
	now := db.now()
	db.update(r, func(row *Row) { row.NotifiedAt = now })
	return eventqueue.Notification{Event: r.ID, Canvas: r.Canvas}
}

func (db *database) notifyAll(rows []*record) (taken []eventqueue.Notification) {
	for _, r := range rows {
		taken = append(taken, db.notify(r))
	}
	return taken
}

func sortedOnce(ids []eventqueue.EventID) []eventqueue.EventID {
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}

// resultOf returns no result together with an error.
func resultOf[T any](result []T, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}
