package memstore

import (
	"time"
)

// maxLostAfterFactor bounds the growing interval between two notifications of an
// event that waits.
const maxLostAfterFactor = 10

// live reports whether a row may run now, or is running.
func (db *database) live(r *Row, now time.Time) bool {
	return !r.NotifiedAt.IsZero() && r.Group != groupWaiting && !latest(r.DelayUntil, r.EnqueuedAt).After(now) && len(db.rulesOf(r)) == 0
}

// lost reports whether the notification of a live row seems lost: it is free, and has
// been locked until after the notification, or silent for longer than an interval that
// doubles each time.
func (db *database) lost(r *Row, now time.Time, lostAfter time.Duration) bool {
	if !db.live(r, now) || !db.unlocked(r, now) {
		return false
	}
	if r.LockedAt.After(r.NotifiedAt.Add(-db.validFor())) {
		return true
	}
	return silent(r, now, lostAfter)
}

// silent reports whether the last notification of a row is so old that it seems lost.
func silent(r *Row, now time.Time, lostAfter time.Duration) bool {
	due := latest(r.DelayUntil, r.EnqueuedAt)
	return !r.NotifiedAt.IsZero() && now.Sub(latest(due, r.NotifiedAt)) > min(max(lostAfter, r.NotifiedAt.Sub(due)), maxLostAfterFactor*lostAfter)
}
