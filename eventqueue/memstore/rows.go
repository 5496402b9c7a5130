package memstore

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// Row is a row of events_v2. A zero time stands for NULL.
type Row struct {
	ID         eventqueue.EventID
	Canvas     eventqueue.CanvasID
	Module     string
	Name       string
	Modifier   string
	Value      string
	Retries    int32
	DelayUntil time.Time
	EnqueuedAt time.Time
	LockedAt   time.Time
	Attempts   int32
	NotifiedAt time.Time
	UniqueFor  time.Duration

	// Line is 0 for an event without an OrderingKey, 1 while it waits in its line, 2
	// when it has its turn there, and 3 when it takes its place later.
	Line        int16
	OrderingKey string
	// LimitedAttempt names the claim that a rate limit has put off.
	LimitedAttempt int16
}

// Handler is the key of the handler that the event is for.
func (r Row) Handler() eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: r.Module, Name: r.Name, Modifier: r.Modifier}
}

func (r Row) scope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: r.Canvas, Module: r.Module, Name: r.Name}
}

// LogRow is a row of event_log.
type LogRow struct {
	ID         eventqueue.EventID
	Canvas     eventqueue.CanvasID
	Module     string
	Name       string
	Modifier   string
	Value      string
	Status     eventqueue.LogStatus
	Retries    int32
	Attempts   int32
	LastError  string // empty stands for NULL when Completed
	EnqueuedAt time.Time
	CreatedAt  time.Time

	OrderingKey string
}

// RuleRow is a row of scheduling_rules.
type RuleRow struct {
	ID int32
	eventqueue.Rule
}

// Change is one committed change of a row of events_v2.
type Change struct {
	// At is the database's clock at the commit.
	At time.Time
	// Before is nil for a row that is new, After for one that is deleted.
	Before, After *Row
	// Logged is the row of event_log that was written with a deletion, if any.
	Logged *LogRow
}

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

// Now is the database's clock.
func (s *Store) Now() time.Time {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return s.db.now()
}
