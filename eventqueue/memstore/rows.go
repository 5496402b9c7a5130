package memstore

import (
	"bytes"
	"cmp"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
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

	// Group is 0 for an event in no ordering group, 1 while it waits in one, 2 when it
	// may run in all of them, and 3 when it joins its group later.
	Group       int16
	OrderingKey string
	// LimitedAttempt identifies the claim that a rate limit has put off.
	LimitedAttempt int16
	// Snoozes is how often the event was snoozed in a row.
	Snoozes int16

	// ClaimID is the number of the last claim, Begun says that its run has begun, and
	// Company is the column suspect; 0 stands for NULL.
	ClaimID eventqueue.ClaimID
	Begun   bool
	Company int16
	// LostRun means that a lost run was counted, and that no run has begun since.
	LostRun bool

	// Attributes are JSON with sorted keys; empty stands for NULL, and so does a Parent of 0.
	Attributes string
	Parent     eventqueue.EventID
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
	Status     maintenance.LogStatus
	Retries    int32
	Attempts   int32
	LastError  string // empty stands for NULL when Completed
	EnqueuedAt time.Time
	CreatedAt  time.Time

	OrderingKey string
	Attributes  string // as in Row, and Parent as well
	Parent      eventqueue.EventID

	// Reason and Actor are of a cancelled event, and Reason of one that failed for good as well; empty stands for NULL.
	Reason, Actor string
}

// RuleRow is a row of scheduling_rules.
type RuleRow struct {
	ID int32
	operate.Rule
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

// KeyRow is a row of unique_keys.
type KeyRow struct {
	eventqueue.UniqueKey
	Event eventqueue.EventID
}

// ExpiryRow is a row of unique_expiries: when a unique key is free again.
type ExpiryRow struct {
	Event     eventqueue.EventID
	UniqueFor time.Duration
	ExpiresAt time.Time
}

// RateRow is a row of rate_limits with that of rate_counters. A zero limit stands for
// NULL.
type RateRow struct {
	operate.RateLimit
	MinuteAt    time.Time
	MinuteCount int64
	DayAt       time.Time
	DayCount    int64
	Waiting     int64
}

// PlaceRow is a row of event_groups.
type PlaceRow struct {
	Event  eventqueue.EventID
	Stage  int
	Canvas eventqueue.CanvasID
	Group  string
	MayRun bool
}

func compareScopes(a, b eventqueue.Scope) int {
	return cmp.Or(bytes.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
}
