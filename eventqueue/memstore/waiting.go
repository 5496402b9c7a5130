package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// OldestDue implements maintenance.WaitingStore.
func (s *Store) OldestDue(ctx context.Context, scope eventqueue.Scope) (id eventqueue.EventID, modifier string, err error) {
	err = s.atOnce(ctx, OpOldestDue, func() {
		now := s.db.now()
		var rows []*record
		for _, r := range s.db.events {
			if r.scope() == scope {
				rows = append(rows, r)
			}
		}
		slices.SortFunc(rows, byID)
		var oldest *record
		for _, r := range slices.Concat(rows[:min(pendingEvents, len(rows))], firstDelayed(rows, now)) {
			if s.db.mayRun(&r.Row, now) && !s.db.narrowlyRuled(&r.Row) && (oldest == nil || r.DelayUntil.Before(oldest.DelayUntil)) {
				oldest = r
			}
		}
		if oldest != nil {
			id, modifier = oldest.ID, oldest.Modifier
		}
	})
	if err != nil {
		return 0, "", err
	}
	return id, modifier, nil
}

// handlerRuled reports whether a rule holds back all events of a handler.
func (db *database) handlerRuled(scope eventqueue.Scope) bool {
	return slices.ContainsFunc(db.rules, func(r RuleRow) bool {
		return r.Modifier == "" && r.Rate == 0 && r.Matches(scope.Canvas, eventqueue.HandlerKey{Module: scope.Module, Name: scope.Name})
	})
}

// narrowlyRuled reports whether a rule holds back an event, and may say no where handlerRuled holds: while all rules are
// of whole handlers.
func (db *database) narrowlyRuled(row *Row) bool {
	narrow := slices.ContainsFunc(db.rules, func(r RuleRow) bool { return r.Prefix || r.Modifier != "" || r.Rate > 0 })
	return narrow && len(db.rulesOf(row)) > 0
}

// addWaiting adds to w what is waiting of a scope whose rows are in the order of their ids, of which the first share were read
// for pending. It returns for how long the oldest due event has been due that nobody runs and no rule holds back; nil: none has.
func (db *database) addWaiting(w *maintenance.Waiting, scope eventqueue.Scope, rows []*record, share int, pending int64, now time.Time) (due *time.Duration, running int64) {
	read := rows[:min(share, len(rows))]
	var held int64
	for _, r := range read {
		if !db.unlocked(&r.Row, now) {
			running++
		}
		if db.narrowlyRuled(&r.Row) {
			held++
		}
	}
	for _, r := range slices.Concat(read, firstDelayed(rows, now)) {
		if !r.DelayUntil.After(now) && db.unlocked(&r.Row, now) && !db.narrowlyRuled(&r.Row) {
			age := min(now.Sub(r.DelayUntil), longestDue)
			due = higher(due, &age)
		}
	}
	n := int64(len(read))
	held = (2*pending*held + n) / (2 * n) // rounded
	if db.handlerRuled(scope) {
		due, held = nil, pending
	}
	w.Running, w.Pending, w.Held = w.Running+running, w.Pending+pending, w.Held+held
	if due != nil {
		w.OldestDue = max(w.OldestDue, *due)
	}
	return due, running
}

// addEnded adds what has ended in the last whole minute, and returns the scopes of which something has in that or the present one.
func (db *database) addEnded(w *maintenance.Waiting, now time.Time) (ended map[eventqueue.Scope]bool) {
	minute := now.Truncate(time.Minute)
	ended = map[eventqueue.Scope]bool{}
	for key, row := range db.counts.minutes {
		if key.begins.Before(minute.Add(-time.Minute)) || row.Completed+row.Failed+row.Retried == 0 {
			continue
		}
		w.EndedOf++
		ended[key.Scope] = true
		if key.begins.Before(minute) {
			w.Completed, w.Failed, w.Retried = w.Completed+row.Completed, w.Failed+row.Failed, w.Retried+row.Retried
		}
	}
	return ended
}

// unserve leaves in w the scopes of which nothing has ended: neither by their name, nor on canvases beyond the bound of a minute.
func unserve(w *maintenance.Waiting, ended map[eventqueue.Scope]bool) {
	w.Unserved = slices.DeleteFunc(w.Unserved, func(u maintenance.Unserved) bool {
		return ended[u.Scope] || ended[eventqueue.Scope{Module: u.Module, Name: u.Name}] || ended[eventqueue.Scope{}]
	})
	slices.SortFunc(w.Unserved, func(a, b maintenance.Unserved) int {
		return cmp.Or(cmp.Compare(b.DueFor, a.DueFor), compareScopes(a.Scope, b.Scope))
	})
	w.UnservedHandlers = int64(len(w.Unserved))
	w.Unserved = w.Unserved[:min(maintenance.MaxUnserved, len(w.Unserved))]
}
