package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// LogStatus says how an event ended.
type LogStatus = eventqueue.LogStatus

// The ends of an event.
const (
	LogCompleted = eventqueue.LogCompleted
	LogFailed    = eventqueue.LogFailed
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

// ListLog returns at most limit entries of event_log in the order of their ids,
// beginning behind the id after (0: from the start); newest reverses the order.
// An empty status means all.
func (s *Store) ListLog(ctx context.Context, filter HandlerFilter, status LogStatus, newest bool, after eventqueue.EventID, limit int) ([]LogEntry, error) {
	sql := oldestLogSQL
	if newest {
		sql = newestLogSQL
	}
	rows, err := s.pool.Query(ctx, sql, filter.args(string(status), false, after, limit)...)
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

// RetryResult says what became of an event that was to be retried.
type RetryResult string

// The results of a retry.
const (
	RetryMoved     RetryResult = "retried"   // it is back in the queue
	RetryQueued    RetryResult = "queued"    // it is in the queue already
	RetryCompleted RetryResult = "completed" // it has completed, and stays so
	RetryUnknown   RetryResult = "unknown"   // there is no trace of it
)

// Retried is one event that was to be retried.
type Retried struct {
	ID     eventqueue.EventID
	Result RetryResult
}

// An event leaves event_log and enters events_v2 in one statement (I1). It keeps
// its id, and its attempts, so that no fence token repeats (I5). It is owed a
// notification, and the commit wakes the relay. Whoever comes second waits for
// the row, and finds it gone (I14). A unique key that still stands for the event
// does so until it ends again, and for its time from then on. In a line it takes the
// place of its id.
const retrySQL = `
WITH asked AS (
    SELECT DISTINCT id FROM unnest($1::bigint[]) AS asked (id)
), failed AS (
    SELECT l.id
    FROM event_log l
    WHERE l.id IN (SELECT id FROM asked) AND l.status = 'FAILED'
    ORDER BY l.id
    FOR UPDATE
), taken AS (
    DELETE FROM event_log l USING failed WHERE l.id = failed.id
    RETURNING l.id, l.canvas_id, l.module, l.name, l.modifier, l.value, l.attempts, l.enqueued_at, l.ordering_key
), moved AS (
    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, retries, attempts, delay_until, enqueued_at, notified_at, unique_seconds, line, ordering_key)
    SELECT id, canvas_id, module, name, modifier, value, 0, attempts, clock_timestamp(), enqueued_at, NULL,
        coalesce((SELECT u.unique_seconds FROM unique_ends u WHERE u.event_id = taken.id), 0),
        CASE WHEN ordering_key IS NULL THEN 0 ELSE 3 END, coalesce(ordering_key, '')
    FROM taken
    ORDER BY id
    RETURNING id
), woken AS (
    SELECT pg_notify('` + owedChannel + `', '') WHERE EXISTS (SELECT FROM moved)
)
SELECT asked.id,
    CASE
        WHEN moved.id IS NOT NULL THEN 'retried'
        WHEN l.status = 'COMPLETED' THEN 'completed'
        WHEN e.id IS NOT NULL OR l.id IS NOT NULL THEN 'queued'
        ELSE 'unknown'
    END
FROM asked
LEFT JOIN moved ON moved.id = asked.id
LEFT JOIN event_log l ON l.id = asked.id
LEFT JOIN events_v2 e ON e.id = asked.id
LEFT JOIN woken ON true
ORDER BY asked.id`

// Retry moves failed events back into the queue, with no retry used, and says of
// each id what became of it. Their notifications are owed; TakeOwed is for who
// wants to publish them at once. It blocks for one statement.
func (s *Store) Retry(ctx context.Context, ids []eventqueue.EventID) ([]Retried, error) {
	rows, err := s.pool.Query(ctx, retrySQL, int64s(ids))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Retried, err error) {
		err = row.Scan(&r.ID, &r.Result)
		return r, err
	})
}

const lastLoggedSQL = `SELECT coalesce(max(id), 0) FROM event_log`

// LastLogged is the highest id in event_log, 0 when it is empty: a bound for a
// walk over it that does not chase what comes in meanwhile.
func (s *Store) LastLogged(ctx context.Context) (last eventqueue.EventID, err error) {
	err = s.pool.QueryRow(ctx, lastLoggedSQL).Scan(&last)
	return last, err
}

const failedIDsSQL = `
SELECT id
FROM event_log
WHERE ` + filterSQL + ` AND status = 'FAILED' AND id > $4 AND id <= $5
ORDER BY id
LIMIT $6`

// FailedIDs returns at most limit ids of failed events, in order, that are above
// after and not above last.
func (s *Store) FailedIDs(ctx context.Context, filter HandlerFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, error) {
	return queryIDs(ctx, s.pool, failedIDsSQL, filter.args(after, last, limit)...)
}

const wakeRelaySQL = `SELECT pg_notify('` + owedChannel + `', '')`

// WakeRelay has the relays look for owed notifications now rather than when
// their timer says so.
func (s *Store) WakeRelay(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, wakeRelaySQL)
	return err
}
