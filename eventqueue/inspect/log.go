package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// LogStatus is how an event ended.
type LogStatus = maintenance.LogStatus

// The ends of an event.
const (
	LogCompleted = maintenance.LogCompleted
	LogFailed    = maintenance.LogFailed
)

// LogEntry is a row of event_log: an event that has ended.
type LogEntry struct {
	// Event has its Value only when it comes from Show; it has no DelayUntil.
	eventqueue.Event
	ValueBytes int
	Attempts   int32
	Status     LogStatus
	// LastError is empty for a completed event.
	LastError string
	EndedAt   time.Time
	// AsOf is the database's clock.
	AsOf time.Time
}

const logSQL = `
SELECT id, canvas_id, module, name, modifier, retries, attempts, enqueued_at, status::text,
    coalesce(last_error, ''), created_at, octet_length(value), CASE WHEN $5::boolean THEN value END, clock_timestamp()
FROM event_log
WHERE ` + filterSQL + ` AND ($4::text = '' OR status::text = $4)`

const (
	showLogSQL   = logSQL + ` AND id = $6`
	oldestLogSQL = logSQL + ` AND id > $6 ORDER BY id LIMIT $7`
	newestLogSQL = logSQL + ` AND ($6 = 0 OR id < $6) ORDER BY id DESC LIMIT $7`
)

// Log returns at most limit entries of event_log in the order of their ids, beginning
// after the id after (0: from the start). newest reverses the order. An empty status
// means all.
func (r *Reader) Log(ctx context.Context, filter Filter, status LogStatus, newest bool, after eventqueue.EventID, limit int) ([]LogEntry, error) {
	sql := oldestLogSQL
	if newest {
		sql = newestLogSQL
	}
	rows, err := r.pool.Query(ctx, sql, filter.args(string(status), false, after, limit)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanLogged)
}

func scanLogged(row pgx.CollectableRow) (e LogEntry, err error) {
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.Retries, &e.Attempts, &e.EnqueuedAt,
		&e.Status, &e.LastError, &e.EndedAt, &e.ValueBytes, (*[]byte)(&e.Value), &e.AsOf)
	return e, err
}
