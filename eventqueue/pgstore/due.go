package pgstore

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// due is the position of a store that goes from canvas to canvas. It does so only
// while more events are due than the caller asks for: by age alone, one canvas would
// wait for the whole backlog of another (I20).
type due struct {
	mu     sync.Mutex
	behind bool
	canvas [16]byte // the last one served
}

// fewestCanvases is the least number of canvases that one statement visits: a canvas
// whose events are all far in the future counts as well.
const fewestCanvases = 256

// The clock is read in a sub-select: as a value that does not change during the
// statement it can bound the scan of the index events_v2_pending. free is read once,
// whatever the plan: as the inner side of a loop it would skip the rows that it
// took before, and take as many others.
const takeOldestSQL = `
WITH free AS MATERIALIZED (
    SELECT id FROM events_v2
    WHERE notified_at IS NULL AND delay_until <= (SELECT clock_timestamp() + $1::interval)
    ORDER BY delay_until, id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
UPDATE events_v2 e SET notified_at = clock_timestamp()
WHERE e.id = ANY (ARRAY(SELECT id FROM free))
RETURNING e.id, e.canvas_id`

// canvases jumps along the index events_v2_pending_canvas from one canvas to the next.
// Each canvas with due events gets an equal part of the limit. The events
// of a canvas are compared as rows, so that no other index has them in order.
const takeSharesSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT clock_timestamp() + $1::interval AS horizon
), canvases AS (
    SELECT $2::uuid AS canvas_id, 0 AS n
    UNION ALL
    SELECT following.canvas_id, canvases.n + 1
    FROM canvases CROSS JOIN LATERAL (
        SELECT e.canvas_id FROM events_v2 e
        WHERE e.notified_at IS NULL AND e.canvas_id > canvases.canvas_id
        ORDER BY e.canvas_id LIMIT 1
    ) AS following
    WHERE canvases.n < $4
), due AS MATERIALIZED (
    SELECT canvas_id, n FROM canvases
    WHERE n > 0 AND (
        SELECT e.delay_until FROM events_v2 e
        WHERE e.notified_at IS NULL AND e.canvas_id >= canvases.canvas_id
        ORDER BY e.canvas_id, e.delay_until, e.id LIMIT 1) <= (SELECT horizon FROM clock)
    ORDER BY n
    LIMIT $3
), free AS MATERIALIZED (
    SELECT share.id
    FROM due CROSS JOIN LATERAL (
        SELECT e.id FROM events_v2 e
        WHERE e.notified_at IS NULL AND e.canvas_id >= due.canvas_id
          AND (e.canvas_id, e.delay_until) <= (due.canvas_id, (SELECT horizon FROM clock))
        ORDER BY e.canvas_id, e.delay_until, e.id
        LIMIT (SELECT $3 / count(*) FROM due)
        FOR UPDATE SKIP LOCKED
    ) AS share
), taken AS (
    UPDATE events_v2 e SET notified_at = clock_timestamp()
    WHERE e.id = ANY (ARRAY(SELECT id FROM free))
    RETURNING e.id, e.canvas_id
)
SELECT progress.canvas_id, taken.id, taken.canvas_id
FROM (
    SELECT CASE
        WHEN (SELECT count(*) FROM due) = $3 THEN (SELECT canvas_id FROM due ORDER BY n DESC LIMIT 1)
        WHEN (SELECT max(n) FROM canvases) = $4 THEN (SELECT canvas_id FROM canvases ORDER BY n DESC LIMIT 1)
    END AS canvas_id
) AS progress LEFT JOIN taken ON true`

// TakeDue implements maintenance.RelayStore.
func (s *Store) TakeDue(ctx context.Context, within time.Duration, limit int) ([]eventqueue.Notification, error) {
	taken, err := s.takeShares(ctx, within, limit)
	if err != nil {
		return nil, err
	}
	rest := limit - len(taken)
	if rest == 0 {
		return taken, nil
	}
	oldest, err := s.takeOldest(ctx, within, rest)
	if err != nil && len(taken) == 0 {
		return nil, err
	}
	if err == nil {
		s.due.mu.Lock()
		s.due.behind = len(oldest) == rest
		s.due.mu.Unlock()
	}
	return append(taken, oldest...), nil // what is taken has to be published, even if the rest failed
}

func (s *Store) takeOldest(ctx context.Context, within time.Duration, limit int) (taken []eventqueue.Notification, err error) {
	err = s.walk(ctx, takeOldestSQL, []any{within, limit}, func(rows pgx.Rows) (err error) {
		taken, err = pgx.CollectRows(rows, scanNotification)
		return err
	})
	return taken, err
}

// takeShares takes nothing while the store is not behind.
func (s *Store) takeShares(ctx context.Context, within time.Duration, limit int) (taken []eventqueue.Notification, err error) {
	s.due.mu.Lock()
	behind, after := s.due.behind, s.due.canvas
	s.due.mu.Unlock()
	if !behind {
		return nil, nil
	}
	var next [16]byte
	err = s.walk(ctx, takeSharesSQL, []any{within, after, limit, max(limit, fewestCanvases)}, func(rows pgx.Rows) error {
		var last, canvas *[16]byte
		var id *eventqueue.EventID
		_, err := pgx.ForEachRow(rows, []any{&last, &id, &canvas}, func() error {
			if last != nil {
				next = *last
			}
			if id != nil {
				taken = append(taken, eventqueue.Notification{Event: *id, Canvas: *canvas})
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.due.mu.Lock()
	s.due.canvas = next
	s.due.mu.Unlock()
	return taken, nil
}
