package memstore

import (
	"cmp"
	"slices"
	"time"
)

// Events returns a copy of the committed rows of events_v2, by id.
func (s *Store) Events() []Row {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	rows := make([]Row, 0, len(s.db.events))
	for _, r := range s.db.events {
		rows = append(rows, r.Row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return int(a.ID - b.ID) })
	return rows
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
