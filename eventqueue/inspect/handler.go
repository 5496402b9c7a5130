package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// Each minute is looked up by its key, since it may have the counts of thousands of other handlers.
const minutesOfSQL = `
SELECT e.minute, e.canvas_id, e.module, e.name, e.emitted, e.completed, e.failed, e.retried, e.cancelled, e.waits, e.runs, e.pending, e.oldest_due, clock_timestamp()
FROM generate_series(date_trunc('minute', clock_timestamp() - $4::interval, 'UTC'), clock_timestamp(), '1 minute') AS asked (minute)
CROSS JOIN unnest($1::uuid[], $2::text[], $3::text[]) AS scope (canvas_id, module, name)
CROSS JOIN LATERAL (
    SELECT * FROM event_minutes m
    WHERE m.minute = asked.minute AND m.canvas_id = scope.canvas_id AND m.module = scope.module AND m.name = scope.name LIMIT 1) AS e
ORDER BY e.minute, e.canvas_id, e.module, e.name`

// MinutesOf returns the counts of some handlers in each minute of the time since that has some, by its beginning,
// canvas, module and name. Its cost grows with that time and the number of these handlers, and not with that of others.
func (r *Reader) MinutesOf(ctx context.Context, since time.Duration, scopes ...eventqueue.Scope) ([]Minute, error) {
	modules, names, canvases := make([]string, len(scopes)), make([]string, len(scopes)), make([]eventqueue.CanvasID, len(scopes))
	for i, scope := range scopes {
		canvases[i], modules[i], names[i] = scope.Canvas, scope.Module, scope.Name
	}
	return walked(ctx, r, scanMinute, minutesOfSQL, uuids(canvases), modules, names, since)
}

const hoursOfSQL = `
SELECT e.hour, e.canvas_id, e.module, e.name, e.emitted, e.completed, e.failed, e.retried, e.cancelled, e.waits, e.runs, e.pending, e.oldest_due, clock_timestamp()
FROM generate_series(date_trunc('hour', clock_timestamp() - $4::interval, 'UTC'), clock_timestamp(), '1 hour') AS asked (hour)
CROSS JOIN LATERAL (
    SELECT * FROM event_hours h WHERE h.hour = asked.hour AND h.canvas_id = $1 AND h.module = $2 AND h.name = $3 LIMIT 1) AS e
ORDER BY e.hour`

// HoursOf returns the counts of a handler in each hour of the time since that cron has summed up. Its cost grows with that time.
func (r *Reader) HoursOf(ctx context.Context, since time.Duration, scope eventqueue.Scope) (HourSums, error) {
	sums, err := r.until(ctx, "event_hours", since)
	if err != nil {
		return sums, err
	}
	sums.Of[scope.Canvas], err = walked(ctx, r, scanMinute, hoursOfSQL, [16]byte(scope.Canvas), scope.Module, scope.Name, since)
	return sums, err
}

const countedSQL = `
SELECT canvas_id, module, name, sum(emitted + completed + failed + retried + cancelled)::bigint
FROM event_minutes
WHERE minute >= (SELECT date_trunc('minute', clock_timestamp() - $4::interval, 'UTC')) AND ` + filterSQL + `
GROUP BY canvas_id, module, name`

// Counted returns the handlers that have counts in the time since, with the sum of all these counts, in no order. It
// costs a part of what Minutes costs, since it reads no histograms.
func (r *Reader) Counted(ctx context.Context, filter Filter, since time.Duration) (map[eventqueue.Scope]int64, error) {
	sums := map[eventqueue.Scope]int64{}
	_, err := walked(ctx, r, func(row pgx.CollectableRow) (none struct{}, err error) {
		var scope eventqueue.Scope
		var n int64
		err = row.Scan((*[16]byte)(&scope.Canvas), &scope.Module, &scope.Name, &n)
		sums[scope] = n
		return none, err
	}, countedSQL, filter.args(since)...)
	return sums, err
}

// RecentError is an error of an event's run.
type RecentError struct {
	Event eventqueue.EventID
	Error string
	// At is when the run began, and, if the event has FAILED, when it did.
	At time.Time
	// Failed reports whether the event has FAILED; else it waits to be tried again.
	Failed bool
}

// The queue has no index by error: the first events of the handler are looked at.
const recentErrorsSQL = `
WITH queued AS MATERIALIZED (
    SELECT e.id FROM events_v2 e
    WHERE e.canvas_id = $1 AND e.module = $2 AND e.name = $3
    ORDER BY e.canvas_id, e.module, e.name, e.id LIMIT $5
)
SELECT id, error, at, failed FROM (
    (SELECT q.id, a.error, a.started_at AS at, false AS failed
     FROM queued q CROSS JOIN LATERAL (
         SELECT a.error, a.started_at FROM event_attempts a WHERE a.event_id = q.id ORDER BY a.attempt DESC LIMIT 1) AS a
     ORDER BY a.started_at DESC LIMIT $4)
    UNION ALL
    (SELECT id, coalesce(left(last_error, 8192), ''), ` + endedSQL + `, true FROM event_log
     WHERE canvas_id = $1 AND module = $2 AND name = $3 AND status = 'FAILED' AND status <> 'COMPLETED'
     ORDER BY created_at DESC, id DESC LIMIT $4)
) AS recent
ORDER BY at DESC LIMIT $4`

// errorsQueued is how many events of the queue are looked at for errors.
const errorsQueued = 500

// RecentErrors returns at most limit of the newest errors of a handler on a canvas, each of another event. Of events that wait it
// looks at a bounded number, so that their errors may be missing where the backlog is long.
func (r *Reader) RecentErrors(ctx context.Context, scope eventqueue.Scope, limit int) ([]RecentError, error) {
	rows, err := r.pool.Query(ctx, recentErrorsSQL, [16]byte(scope.Canvas), scope.Module, scope.Name, limit, errorsQueued)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[RecentError])
}
