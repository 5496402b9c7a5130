package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// The history is walked in the order of its primary key, so that no other index
// has to be written for every event that ends. Ids grow with enqueued_at, and
// nothing ends before it was enqueued: after a whole page of younger entries no
// older ones follow. page is bounded by the entries looked at.
const outdatedSQL = `
WITH bound AS MATERIALIZED (
    SELECT clock_timestamp() - $2::interval AS ended
), page AS MATERIALIZED (
    SELECT id, status::text = $1::text AS asked, status::text = $1::text AND created_at <= bound.ended AS outdated,
        least(enqueued_at, created_at) <= bound.ended AS aged
    FROM bound CROSS JOIN LATERAL (
        SELECT id, status, created_at, enqueued_at FROM event_log WHERE id > $3 ORDER BY id LIMIT $4) AS entries
)`

// An entry that another transaction writes, such as a retry that moves it, is skipped, and
// one that was written since the page was read is looked at again.
const pruneLogSQL = outdatedSQL + `, free AS MATERIALIZED (
    SELECT l.id
    FROM event_log l, bound
    WHERE l.id = ANY (ARRAY(SELECT id FROM page WHERE outdated)) AND l.status::text = $1 AND l.created_at <= bound.ended
    ORDER BY l.id
    FOR UPDATE OF l SKIP LOCKED
), gone AS (
    DELETE FROM event_log WHERE id = ANY (ARRAY(SELECT id FROM free)) RETURNING id
)
SELECT (SELECT count(*) FROM gone), coalesce(min(id) FILTER (WHERE asked AND id NOT IN (SELECT id FROM gone)), 0),
    coalesce(max(id), 0), count(*) = $4 AND bool_or(aged)
FROM page`

const countLogSQL = outdatedSQL + `
SELECT count(*) FILTER (WHERE outdated), coalesce(min(id) FILTER (WHERE asked AND NOT outdated), 0),
    coalesce(max(id), 0), count(*) = $4 AND bool_or(aged)
FROM page`

// PruneLog implements maintenance.HistoryStore, in one statement.
func (s *Store) PruneLog(ctx context.Context, status maintenance.LogStatus, olderThan time.Duration, after eventqueue.EventID, limit int) (maintenance.PrunedPage, error) {
	return s.prunedPage(ctx, pruneLogSQL, status, olderThan, after, limit)
}

// CountLog implements maintenance.HistoryStore, in one statement.
func (s *Store) CountLog(ctx context.Context, status maintenance.LogStatus, olderThan time.Duration, after eventqueue.EventID, limit int) (maintenance.PrunedPage, error) {
	return s.prunedPage(ctx, countLogSQL, status, olderThan, after, limit)
}

func (s *Store) prunedPage(ctx context.Context, sql string, status maintenance.LogStatus, olderThan time.Duration, after eventqueue.EventID, limit int) (page maintenance.PrunedPage, err error) {
	err = s.walk(ctx, sql, []any{string(status), olderThan, after, limit}, func(rows pgx.Rows) error {
		page, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[maintenance.PrunedPage])
		return err
	})
	return page, err
}
