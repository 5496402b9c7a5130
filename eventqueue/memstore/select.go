package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/attributes"
)

// LastQueued implements operate.SelectStore.
func (s *Store) LastQueued(ctx context.Context) (last eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpSelect, func() { last = lastOf(s.db.events) })
	return last, err
}

// LastLogged implements operate.ChangeStore.
func (s *Store) LastLogged(ctx context.Context) (last eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpSelect, func() { last = lastOf(s.db.log) })
	return last, err
}

func lastOf[T any](rows map[eventqueue.EventID]T) (last eventqueue.EventID) {
	for id := range rows {
		last = max(last, id)
	}
	return last
}

// selected has what a filter selects an event by.
type selected struct {
	scope      eventqueue.Scope
	modifier   string
	attributes string
	at         time.Time
	failure    string
	state      operate.EventState
}

func (e selected) by(f operate.EventFilter, now time.Time) bool {
	if f.Canvas != nil && *f.Canvas != e.scope.Canvas || f.State != "" && f.State != e.state {
		return false
	}
	for _, field := range [][2]string{{f.Module, e.scope.Module}, {f.Name, e.scope.Name}, {f.Modifier, e.modifier}} {
		if field[0] != "" && field[0] != field[1] {
			return false
		}
	}
	has := attributes.Decode([]byte(e.attributes))
	for key, value := range f.Attributes {
		if own, there := has[key]; !there || own != value {
			return false
		}
	}
	return strings.Contains(e.failure, f.Error) &&
		(f.OlderThan == 0 || !e.at.After(now.Add(-f.OlderThan.Truncate(time.Microsecond)))) &&
		(f.NewerThan == 0 || e.at.After(now.Add(-f.NewerThan.Truncate(time.Microsecond))))
}

// Select implements operate.SelectStore.
func (s *Store) Select(ctx context.Context, filter operate.EventFilter, after, last eventqueue.EventID, limit int) (ids []eventqueue.EventID, next eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpSelect, func() {
		now := s.db.now()
		ids, next = selectPage(s.db.events, after, last, limit, func(id eventqueue.EventID, r *record) bool {
			e := selected{r.scope(), r.Modifier, r.Attributes, r.EnqueuedAt, "", s.db.stateOf(&r.Row, now)}
			if failed := s.db.attempts[id]; len(failed) > 0 {
				e.failure = failed[len(failed)-1].Error
			}
			return e.by(filter, now)
		})
	})
	return ids, next, err
}

// SelectLogged implements operate.ChangeStore.
func (s *Store) SelectLogged(ctx context.Context, filter operate.EventFilter, after, last eventqueue.EventID, limit int) (ids []eventqueue.EventID, next eventqueue.EventID, err error) {
	filter.State = cmp.Or(filter.State, operate.StateFailed)
	err = s.atOnce(ctx, OpSelect, func() {
		now := s.db.now()
		ids, next = selectPage(s.db.log, after, last, limit, func(_ eventqueue.EventID, r LogRow) bool {
			state := operate.EventState(strings.ToLower(string(r.Status)))
			return selected{eventqueue.Scope{Canvas: r.Canvas, Module: r.Module, Name: r.Name}, r.Modifier, r.Attributes, r.CreatedAt, r.LastError, state}.by(filter, now)
		})
	})
	return ids, next, err
}

// selectPage reads the rows of a page, by id, and returns those for which selects is true.
func selectPage[T any](rows map[eventqueue.EventID]T, after, last eventqueue.EventID, limit int, selects func(id eventqueue.EventID, row T) bool) (ids []eventqueue.EventID, next eventqueue.EventID) {
	page := slices.DeleteFunc(slices.Sorted(maps.Keys(rows)), func(id eventqueue.EventID) bool { return id <= after || id > last })
	if len(page) >= limit {
		page = page[:limit]
		next = page[limit-1]
	}
	for _, id := range page {
		if selects(id, rows[id]) {
			ids = append(ids, id)
		}
	}
	return ids, next
}

// stateOf is the state of an event, as operators see it.
func (db *database) stateOf(r *Row, now time.Time) operate.EventState {
	rule := db.rule(r)
	switch {
	case !db.unlocked(r, now):
		return operate.StateRunning
	case rule == machine.BlockRule:
		return operate.StateBlocked
	case rule == machine.PauseRule:
		return operate.StatePaused
	case r.DelayUntil.After(now):
		return operate.StateDelayed
	case !r.LockedAt.IsZero():
		return operate.StateExpired
	case r.Group == groupWaiting:
		return operate.StateBehind
	default:
		return operate.StateWaiting
	}
}
