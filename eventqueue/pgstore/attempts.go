package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// recordSQL is a part of a fenced statement: it records the failed attempts of the rows that ended
// has written, and deletes the oldest of each event, so that worker.MaxAttempts are left. durations,
// errors, stacks and logs are parameters; a run without a duration is not recorded, and a batch without any
// failure writes nothing. Only the holder of an event writes its attempts.
//
// After a crash that lost commits (synchronous_commit = off) a number may come a second
// time: the newer attempt replaces the older one.
func recordSQL(durations, errors, stacks, logs string) string {
	return fmt.Sprintf(`, recorded AS (
    INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, worker, error, stack, run_log)
    SELECT ended.id, ended.attempts, ended.canvas_id, clock.now - failed.duration, failed.duration, `+workerSQL+`, failed.error, failed.stack, failed.run_log
    FROM clock CROSS JOIN ended JOIN unnest($1::bigint[], %s::interval[], %s::text[], %s::text[], %s::text[]) AS failed (id, duration, error, stack, run_log) ON failed.id = ended.id
    WHERE failed.duration IS NOT NULL
    ON CONFLICT (event_id, attempt) DO UPDATE SET canvas_id = excluded.canvas_id, started_at = excluded.started_at,
        duration = excluded.duration, worker = excluded.worker, error = excluded.error, stack = excluded.stack, run_log = excluded.run_log
    RETURNING event_id, attempt
), outdated AS (
    DELETE FROM event_attempts a WHERE a.ctid = ANY (ARRAY(
        SELECT older.version FROM recorded CROSS JOIN LATERAL (
            SELECT o.ctid AS version FROM event_attempts o
            WHERE o.event_id = recorded.event_id AND o.attempt <> recorded.attempt
            ORDER BY o.attempt DESC OFFSET %d) AS older))
)`, durations, errors, stacks, logs, worker.MaxAttempts-1)
}

// workerSQL is the number of the worker that had claimed a row of ended; NULL: it is not known.
var workerSQL = "nullif(" + claimantSQL("ended") + ", 0)"

// recordedDuration is the duration of a run whose failure is to be recorded, nil for any other.
func recordedDuration(completion *worker.Completion) *time.Duration {
	if !completion.Records() {
		return nil
	}
	return &completion.Duration
}

// An event whose rows are read may lie across two pages, so all of its rows are deleted with the
// first. No attempts are written for an event that is gone; another relay may be deleting them.
const deleteAttemptsSQL = `
WITH page AS MATERIALIZED (
    SELECT event_id FROM event_attempts WHERE event_id > $1 ORDER BY event_id, attempt LIMIT $2
), free AS MATERIALIZED (
    SELECT a.version
    FROM (SELECT DISTINCT event_id FROM page) AS recorded
    LEFT JOIN LATERAL (
        SELECT true AS queued FROM events_v2 e WHERE e.id = recorded.event_id OFFSET 0) AS e ON true
    LEFT JOIN LATERAL (
        SELECT true AS logged FROM event_log l WHERE l.id = recorded.event_id OFFSET 0) AS l ON true
    CROSS JOIN LATERAL (
        SELECT a.ctid AS version FROM event_attempts a
        WHERE a.event_id = recorded.event_id AND e.queued IS NULL AND l.logged IS NULL
        FOR UPDATE SKIP LOCKED) AS a
), gone AS (
    DELETE FROM event_attempts a WHERE a.ctid = ANY (ARRAY(SELECT version FROM free)) RETURNING a.event_id
)
SELECT (SELECT count(*) FROM gone), CASE WHEN count(*) = $2 THEN max(event_id) ELSE 0 END FROM page`

// DeleteAttempts implements maintenance.AttemptStore, in one statement.
func (s *Store) DeleteAttempts(ctx context.Context, after eventqueue.EventID, limit int) (deleted int, next eventqueue.EventID, err error) {
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: deleteAttemptsSQL},
		arguments: []any{after, limit},
		read: func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&deleted, &next}, func() error { return nil })
			return err
		},
	})
	return deleted, next, err
}
