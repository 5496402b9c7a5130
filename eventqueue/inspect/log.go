package inspect

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/internal/attributes"
)

// LogStatus is how an event ended.
type LogStatus = maintenance.LogStatus

// The ends of an event.
const (
	LogCompleted = maintenance.LogCompleted
	LogFailed    = maintenance.LogFailed
	LogCancelled = maintenance.LogCancelled
)

// LogEntry is a row of event_log: an event that has ended.
type LogEntry struct {
	// Event has its Value only when it comes from Show; it has no DelayUntil.
	eventqueue.Event
	ValueBytes int
	Attempts   int32
	Status     LogStatus
	// OrderingKey and UniqueKey are those that it had; empty: none.
	OrderingKey, UniqueKey string
	// LastError is empty for an event that did not fail.
	LastError string
	// ForGood reports whether a FAILED event failed since its handler refused it for good; else its tries were used up, or
	// it ended before that was recorded.
	ForGood bool
	// Result is what the handler has set, as JSON; nil if it has not. Like the value, it is there only when the entry comes from Show, or
	// from Await.
	Result json.RawMessage
	// RunLog is what was logged with the context of the run that completed the event, or failed it; empty: nothing. It is there when Result is.
	RunLog string
	// Reason and Actor are why a CANCELLED event was cancelled, and by whom; empty: not known.
	Reason, Actor string
	EndedAt       time.Time
	// AsOf is the database's clock.
	AsOf time.Time
}

// Rows that SQL has written can have ended at any time; it is shown as the farthest that JSON has.
const endedSQL = `least(greatest(created_at, '0001-01-01 00:00Z'), '9999-12-31 00:00Z')`

const showLogSQL = `
SELECT id, canvas_id, module, name, modifier, retries, attempts, enqueued_at, status::text,
    coalesce(last_error, ''), ` + endedSQL + `, octet_length(value), CASE WHEN $1::boolean THEN value END, clock_timestamp(),
    coalesce(parent_id, 0), attributes::text, coalesce(reason, ''), coalesce(actor, ''), coalesce(ordering_key, ''), coalesce(unique_key, ''), CASE WHEN $1::boolean THEN result END,
    CASE WHEN $1::boolean THEN coalesce(run_log, '') ELSE '' END
FROM event_log
WHERE id = ANY ($2::bigint[])`

// entries returns the rows of some ids, in their order. Those that have left event_log meanwhile are missing.
func (r *Reader) entries(ctx context.Context, ids []eventqueue.EventID) ([]LogEntry, error) {
	found, err := byID(ctx, r, scanLogged, showLogSQL, []any{false, ids})
	if err != nil {
		return nil, err
	}
	at := make(map[eventqueue.EventID]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	slices.SortFunc(found, func(a, b LogEntry) int { return at[a.ID] - at[b.ID] })
	return found, nil
}

func scanLogged(row pgx.CollectableRow) (e LogEntry, err error) {
	var text []byte
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.Retries, &e.Attempts, &e.EnqueuedAt,
		&e.Status, &e.LastError, &e.EndedAt, &e.ValueBytes, (*[]byte)(&e.Value), &e.AsOf, &e.ParentID, &text, &e.Reason, &e.Actor, &e.OrderingKey, &e.UniqueKey, (*[]byte)(&e.Result), &e.RunLog)
	e.Attributes = attributes.Decode(text)
	if e.Status == LogFailed {
		e.ForGood, e.Reason = e.Reason == string(machine.FailedForGood), ""
	}
	return e, err
}
