package memstore

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// Events returns a copy of the committed rows of events_v2, by id.
func (s *Store) Events() []Row {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	rows := make([]Row, 0, len(s.db.events))
	for _, id := range slices.Sorted(maps.Keys(s.db.events)) { // rows are large to sort
		rows = append(rows, s.db.events[id].Row)
	}
	return rows
}

// Event returns a copy of one committed row of events_v2, and the zero Row when there is none.
func (s *Store) Event(id eventqueue.EventID) Row {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if r, there := s.db.events[id]; there {
		return r.Row
	}
	return Row{}
}

// Log returns a copy of the committed rows of event_log, by id.
func (s *Store) Log() []LogRow {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	rows := make([]LogRow, 0, len(s.db.log))
	for _, r := range s.db.log {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b LogRow) int { return int(a.ID - b.ID) })
	return rows
}

// Rules returns a copy of the rows of scheduling_rules, by id.
func (s *Store) Rules() []RuleRow {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return slices.Clone(s.db.rules)
}

// Meets returns whether a rule would hold back a new event of a handler, and whether an event of it is in the queue. It
// is for the function of Do, and is called with its lock held.
func (s *Store) Meets(of eventqueue.CanvasHandler) (ruled, queued bool) {
	row := Row{ID: math.MaxInt64, Canvas: of.Canvas, Module: of.Key.Module, Name: of.Key.Name, Modifier: of.Key.Modifier}
	for _, r := range s.db.events {
		if r.Canvas == of.Canvas && r.Module == of.Key.Module && r.Name == of.Key.Name && r.Modifier == of.Key.Modifier {
			queued = true
			break
		}
	}
	return len(s.db.rulesOf(&row)) > 0, queued
}

// Now returns the time of the database's clock.
func (s *Store) Now() time.Time {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return s.db.now()
}

// Places returns a copy of the committed rows of event_groups, by event and stage.
func (s *Store) Places() (rows []PlaceRow) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for id, p := range s.db.places {
		rows = append(rows, PlaceRow{id.event, id.stage, p.group.canvas, p.group.name, p.mayRun})
	}
	slices.SortFunc(rows, func(a, b PlaceRow) int { return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Stage, b.Stage)) })
	return rows
}

// Keys returns a copy of the committed rows of unique_keys, by canvas and key.
func (s *Store) Keys() []KeyRow {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return s.db.keyRows()
}

// Expiries returns a copy of the committed rows of unique_expiries, by event.
func (s *Store) Expiries() []ExpiryRow {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	rows := make([]ExpiryRow, 0, len(s.db.expiries))
	for _, row := range s.db.expiries {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b ExpiryRow) int { return cmp.Compare(a.Event, b.Event) })
	return rows
}

// Rates returns a copy of the limits with their counters, by canvas, module and name.
func (s *Store) Rates() []RateRow {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return s.db.rateRows()
}
