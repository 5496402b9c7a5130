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

// The bounds of one part of a round: how many scopes or ordering groups it visits, how
// many events at either end of each, how many in all of the scopes where some of these
// are lost, how many events of scopes it takes, and how many events whose locks have been
// renewed it reads.
const (
	roundScopes = 1024
	roundGroups = 256
	roundEvents = 50
	roundDeeper = 4000
	roundTakes  = 5000
	roundRuns   = 2000
)

// TakeRound implements maintenance.RelayStore.
func (s *Store) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	err = s.atOnce(ctx, OpTakeRound, func() {
		switch after.Stage {
		case maintenance.RoundOfHandlers:
			lost, next = s.takeHandlers(after, lostAfter)
		case maintenance.RoundOfGroups:
			lost, next = s.takeGroups(after, lostAfter)
		default:
			lost, next = s.takeRuns(after, lostAfter)
		}
	})
	if err != nil {
		return nil, maintenance.RoundPlace{}, err
	}
	return lost, next, nil
}

func (s *Store) takeHandlers(after maintenance.RoundPlace, lostAfter time.Duration) (taken []eventqueue.Notification, next maintenance.RoundPlace) {
	waiting := map[eventqueue.Scope][]*record{}
	for _, r := range s.db.events {
		if compareScopes(r.scope(), after.Scope) > 0 {
			waiting[r.scope()] = append(waiting[r.scope()], r)
		}
	}
	scopes := slices.SortedFunc(maps.Keys(waiting), compareScopes)
	next.Stage = maintenance.RoundOfGroups
	if len(scopes) >= roundScopes {
		scopes = scopes[:roundScopes]
		next = maintenance.RoundPlace{Scope: scopes[roundScopes-1]}
	}
	now := s.db.now()
	var deeper []eventqueue.Scope
	page := map[*record]bool{}
	for _, scope := range scopes {
		rows := waiting[scope]
		putOff := slices.DeleteFunc(slices.Clone(rows), func(r *record) bool {
			return !r.DelayUntil.After(r.EnqueuedAt) || r.NotifiedAt.IsZero() || r.DelayUntil.After(now)
		})
		slices.SortFunc(putOff, func(a, b *record) int { return a.DelayUntil.Compare(b.DelayUntil) })
		slices.SortFunc(rows, byID)
		ends := slices.Concat(endsOf(rows, roundEvents), endsOf(putOff, roundEvents))
		for _, r := range ends {
			page[r] = true
		}
		if slices.ContainsFunc(ends, func(r *record) bool { return s.db.lost(&r.Row, now, lostAfter) }) {
			deeper = append(deeper, scope)
		}
	}
	for _, scope := range deeper {
		for _, r := range endsOf(waiting[scope], roundDeeper/(2*len(deeper))) {
			page[r] = true
		}
	}
	lost := slices.DeleteFunc(slices.SortedFunc(maps.Keys(page), byID), func(r *record) bool { return !s.db.lost(&r.Row, now, lostAfter) })
	return s.takeLost(equalShares(lost, roundTakes), lostAfter), next
}

// equalShares are at most so many of the rows, of each canvas as many as of the others.
func equalShares(rows []*record, most int) []*record {
	if len(rows) <= most {
		return rows
	}
	seen, rank := map[eventqueue.CanvasID]int{}, map[*record]int{}
	for _, r := range rows {
		rank[r] = seen[r.Canvas]
		seen[r.Canvas]++
	}
	slices.SortStableFunc(rows, func(a, b *record) int { return cmp.Compare(rank[a], rank[b]) })
	rows = rows[:most]
	slices.SortFunc(rows, byID)
	return rows
}

// endsOf are the first and the last n of a list, some of them twice if there are fewer.
func endsOf(rows []*record, n int) []*record {
	n = min(n, len(rows))
	return slices.Concat(rows[:n], rows[len(rows)-n:])
}

func (s *Store) takeGroups(after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace) {
	last := group{after.Scope.Canvas, after.Group}
	stages := map[group]int{}
	for id, p := range s.db.places {
		if compareGroups(p.group, last) > 0 {
			stages[p.group] = id.stage
		}
	}
	groups := slices.SortedFunc(maps.Keys(stages), compareGroups)
	next.Stage = maintenance.RoundOfRuns
	if len(groups) >= roundGroups {
		groups = groups[:roundGroups]
		last = groups[roundGroups-1]
		next = maintenance.RoundPlace{Stage: maintenance.RoundOfGroups, Scope: eventqueue.Scope{Canvas: last.canvas}, Group: last.name}
	}
	now := s.db.now()
	tx := s.begin()
	page := map[*record]bool{}
	var stuck []eventqueue.EventID
	for _, of := range groups {
		running := tx.placesOf(of, true)
		n := min(len(running), roundEvents)
		for _, id := range slices.Concat(running[:n], running[len(running)-n:]) {
			if r, there := s.db.events[id.event]; there {
				page[r] = true
			} else {
				stuck = append(stuck, id.event)
			}
		}
		for _, id := range tx.firstStalled(stages[of], of) {
			if r, there := s.db.events[id]; !there || !latest(r.DelayUntil, r.EnqueuedAt).After(now) && silent(&r.Row, now, lostAfter) {
				stuck = append(stuck, id)
			}
		}
	}
	tx.end(true)
	rows := slices.SortedFunc(maps.Keys(page), byID)
	stuck = append(stuck, s.db.idle(rows)...)
	lost = s.takeLost(rows, lostAfter)
	tx = s.begin()
	defer tx.end(true)
	for _, e := range tx.advance(stuck, nil, stuck, true) {
		lost = append(lost, eventqueue.Notification{Event: e.ID, Canvas: e.Canvas})
	}
	tx.apply()
	return lost, next
}

func compareGroups(a, b group) int {
	return cmp.Or(bytes.Compare(a.canvas[:], b.canvas[:]), cmp.Compare(a.name, b.name))
}

func (s *Store) takeRuns(after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace) {
	page, last := s.db.page(after.Run, roundRuns, func(r *Row) bool { return r.Begun })
	if last != 0 {
		next = maintenance.RoundPlace{Stage: maintenance.RoundOfRuns, Run: last}
	}
	return s.takeLost(page, lostAfter), next
}
