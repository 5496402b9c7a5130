package inspect

import (
	"context"
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
	// LastError is empty for an event that did not fail.
	LastError string
	// ForGood reports whether a FAILED event failed since its handler refused it for good; else its tries were used up, or
	// it ended before that was recorded.
	ForGood bool
	// Reason and Actor are why a CANCELLED event was cancelled, and by whom; empty: not known.
	Reason, Actor string
	EndedAt       time.Time
	// AsOf is the database's clock.
	AsOf time.Time
}

const logSQL = `
SELECT id, canvas_id, module, name, modifier, retries, attempts, enqueued_at, status::text,
    coalesce(last_error, ''), created_at, octet_length(value), CASE WHEN $5::boolean THEN value END, clock_timestamp(),
    coalesce(parent_id, 0), attributes::text, coalesce(reason, ''), coalesce(actor, '')
FROM event_log
WHERE ` + filterSQL + ` AND ($4::text = '' OR status::text = $4)`

const (
	showLogSQL   = logSQL + ` AND id = $6`
	oldestLogSQL = logSQL + ` AND id = ANY ($6::bigint[]) ORDER BY id`
	newestLogSQL = oldestLogSQL + ` DESC`
)

// Log returns at most limit entries of event_log in the order of their ids, beginning
// after the id after (0: from the start). newest reverses the order. An empty status
// means all.
//
// next is the after with which the list goes on, and 0 at its end. It goes on after fewer than limit entries, or none, where
// the filter matches few: Log reads at most MostRead entries.
func (r *Reader) Log(ctx context.Context, filter Filter, status LogStatus, newest bool, after eventqueue.EventID, limit int) (entries []LogEntry, next eventqueue.EventID, err error) {
	found, sql := oldestWindowSQL, oldestLogSQL
	if newest {
		found, sql = newestWindowSQL, newestLogSQL
	}
	w, err := r.read(ctx, found, filter, after, r.mostRead, limit, string(status))
	if err != nil || len(w.ids) == 0 {
		return nil, w.next, err
	}
	entries, err = byID(ctx, r, scanLogged, sql, Filter{}.args("", false, w.ids))
	return entries, w.next, err
}

func scanLogged(row pgx.CollectableRow) (e LogEntry, err error) {
	var text []byte
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.Retries, &e.Attempts, &e.EnqueuedAt,
		&e.Status, &e.LastError, &e.EndedAt, &e.ValueBytes, (*[]byte)(&e.Value), &e.AsOf, &e.ParentID, &text, &e.Reason, &e.Actor)
	e.Attributes = attributes.Decode(text)
	if e.Status == LogFailed {
		e.ForGood, e.Reason = e.Reason == string(machine.FailedForGood), ""
	}
	return e, err
}
