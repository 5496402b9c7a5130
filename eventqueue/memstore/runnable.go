package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// How many scopes one search for runnable events visits, and how many events it
// reads from either end of each.
const (
	runnableScopes = 64
	runnableEvents = 32
)

// Runnable implements worker.Store. Its results are in the order of the ids, and scopes are
// in the order of their bytes.
func (s *Store) Runnable(ctx context.Context, after eventqueue.Scope, except []eventqueue.CanvasID) (events []eventqueue.Event, next eventqueue.Scope, err error) {
	err = s.atOnce(ctx, OpRunnable, func() {
		now := s.db.now()
		waiting := map[eventqueue.Scope][]*record{}
		for _, r := range s.db.events {
			waiting[r.scope()] = append(waiting[r.scope()], r)
		}
		var scopes []eventqueue.Scope
		scopes, next = scopesAfter(slices.SortedFunc(maps.Keys(waiting), compareScopes), after, except)
		for _, scope := range scopes {
			events = append(events, s.db.runnable(waiting[scope], now)...)
		}
		slices.SortFunc(events, func(a, b eventqueue.Event) int { return cmp.Compare(a.ID, b.ID) })
	})
	if err != nil {
		return nil, eventqueue.Scope{}, err
	}
	return events, next, nil
}

// scopesAfter returns the scopes after the given one. An excepted canvas takes one place of
// the page, and adds no scope.
func scopesAfter(all []eventqueue.Scope, after eventqueue.Scope, except []eventqueue.CanvasID) (scopes []eventqueue.Scope, next eventqueue.Scope) {
	last, steps := after, 0
	for _, scope := range all {
		leave := slices.Contains(except, last.Canvas) && scope.Canvas == last.Canvas
		if compareScopes(scope, last) <= 0 || leave {
			continue
		}
		last = scope
		if !slices.Contains(except, scope.Canvas) {
			scopes = append(scopes, scope)
		}
		if steps++; steps == runnableScopes {
			return scopes, scope
		}
	}
	return scopes, eventqueue.Scope{}
}

// runnable returns those of the oldest and newest rows of a scope that could be claimed.
func (db *database) runnable(rows []*record, now time.Time) (events []eventqueue.Event) {
	slices.SortFunc(rows, byID)
	for i, r := range rows {
		atAnEnd := i < runnableEvents || i >= len(rows)-runnableEvents
		if atAnEnd && db.mayRun(&r.Row, now) && len(db.rulesOf(&r.Row)) == 0 {
			events = append(events, eventqueue.Event{ID: r.ID, Canvas: r.Canvas, Module: r.Module, Name: r.Name, Modifier: r.Modifier})
		}
	}
	return events
}
