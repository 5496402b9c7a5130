package memstore

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/minutes"
)

// The bounds of one count of what is pending: how many handlers it visits, how many events it reads
// of all of them, and how many delayed ones of each.
const (
	pendingScopes  = 1000
	pendingEvents  = 50_000
	pendingDelayed = 20
)

// longestDue is the highest oldest_due.
const longestDue = 36_500 * 24 * time.Hour

// CountPending implements maintenance.MinuteStore.
func (s *Store) CountPending(ctx context.Context, after eventqueue.Scope) (next eventqueue.Scope, err error) {
	w, err := s.CountWaiting(ctx, after)
	return w.Next, err
}

// CountWaiting implements maintenance.WaitingStore. It has no minutes to sum up: there are no sums of minutes here.
func (s *Store) CountWaiting(ctx context.Context, after eventqueue.Scope) (w maintenance.Waiting, err error) {
	err = s.atOnce(ctx, OpCountPending, func() {
		now := s.db.now()
		waiting := map[eventqueue.Scope][]*record{}
		for _, r := range s.db.events {
			if compareScopes(r.scope(), after) > 0 {
				waiting[r.scope()] = append(waiting[r.scope()], r)
			}
		}
		scopes := slices.SortedFunc(maps.Keys(waiting), compareScopes)
		if len(scopes) >= pendingScopes {
			scopes = scopes[:pendingScopes]
			w.Next = scopes[pendingScopes-1]
		}
		for _, scope := range scopes {
			row := &MinuteRow{Begins: now.Truncate(time.Minute), Counts: minutes.Counts{Scope: scope}}
			if old := s.db.counts.minutes[keyOfMinute(row)]; old != nil {
				row = old
			}
			s.db.counts.minutes[keyOfMinute(row)] = row
			share := pendingEvents / len(scopes)
			row.Pending, row.OldestDue = s.db.countPending(waiting[scope], share, now)
			due, running := s.db.addWaiting(&w, scope, waiting[scope], share, *row.Pending, now)
			if due != nil && *due >= maintenance.UnservedAfter && running == 0 {
				w.Unserved = append(w.Unserved, maintenance.Unserved{Scope: scope, DueFor: *due})
			}
		}
		unserve(&w, s.db.addEnded(&w, now))
	})
	if err != nil {
		return maintenance.Waiting{}, err
	}
	return w, nil
}

// countPending counts the events of one handler, of which it reads a share, and returns for how long
// the oldest due one of these, or of the first delayed ones, has been due that nobody runs.
func (db *database) countPending(rows []*record, share int, now time.Time) (pending *int64, oldest *time.Duration) {
	slices.SortFunc(rows, byID)
	read := rows[:min(share, len(rows))]
	n := int64(len(read))
	if len(read) == share {
		n = estimate(n, int64(rows[len(rows)-1].ID-read[0].ID+1), int64(read[len(read)-1].ID-read[0].ID+1))
	}
	for _, r := range slices.Concat(read, firstDelayed(rows, now)) {
		if r.DelayUntil.After(now) || !db.unlocked(&r.Row, now) {
			continue
		}
		due := min(now.Sub(r.DelayUntil), longestDue)
		oldest = higher(oldest, &due)
	}
	return &n, oldest
}

// estimate is how many events there are among ids of which the first have n, rounded.
func estimate(n, ids, first int64) int64 {
	twice := new(big.Int).Mul(big.NewInt(2*n), big.NewInt(ids))
	twice.Add(twice, big.NewInt(first))
	return max(n, twice.Div(twice, big.NewInt(2*first)).Int64())
}

// firstDelayed returns the delayed events that have been due for the longest time.
func firstDelayed(rows []*record, now time.Time) (delayed []*record) {
	for _, r := range rows {
		if r.DelayUntil.After(r.EnqueuedAt) && !r.NotifiedAt.IsZero() && !r.DelayUntil.After(now) {
			delayed = append(delayed, r)
		}
	}
	slices.SortStableFunc(delayed, func(a, b *record) int { return a.DelayUntil.Compare(b.DelayUntil) })
	return delayed[:min(pendingDelayed, len(delayed))]
}

// hourCompleteAfter is how long after the end of an hour its minutes can no longer change.
const hourCompleteAfter = 2 * time.Minute

// SumHour implements maintenance.MinuteStore.
func (s *Store) SumHour(ctx context.Context) (summed bool, err error) {
	err = s.atOnce(ctx, OpSumHour, func() {
		first := s.db.counts.firstUnsummed()
		minutes := s.db.counts.minutes.rows(func(begins time.Time) bool { return !begins.Before(first) })
		if len(minutes) == 0 {
			return
		}
		hour := minutes[0].Begins.Truncate(time.Hour)
		if hour.Add(time.Hour + hourCompleteAfter).After(s.db.now()) {
			return
		}
		minutes = slices.DeleteFunc(minutes, func(m MinuteRow) bool { return !m.Begins.Before(hour.Add(time.Hour)) })
		for i := range minutes {
			minutes[i].Begins = hour
		}
		for key, row := range mergeMinutes(byVolume(minutes), minuteRoom{scopes: minuteScopes, handlers: minuteScopes}) {
			s.db.counts.hours[key] = row
		}
		summed = true
	})
	return summed && err == nil, err
}

// PruneMinutes implements maintenance.MinuteStore.
func (s *Store) PruneMinutes(ctx context.Context, minutesFor, hoursFor time.Duration, limit int) (deleted int, err error) {
	err = s.atOnce(ctx, OpPruneMinutes, func() {
		now := s.db.now()
		for _, of := range []struct {
			table     minuteTable
			olderThan time.Duration
		}{{s.db.counts.minutes, minutesFor}, {s.db.counts.hours, hoursFor}} {
			before := now.Add(-of.olderThan.Truncate(time.Microsecond))
			old := of.table.rows(func(begins time.Time) bool { return begins.Before(before) })
			for _, row := range old[:min(limit, len(old))] {
				delete(of.table, keyOfMinute(&row))
				deleted++
			}
		}
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}
