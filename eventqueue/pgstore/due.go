package pgstore

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/refusal"
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
const (
	takeOldestSQL = freeOldestSQL + takeFreeSQL
	freeOldestSQL = `
WITH free AS MATERIALIZED (
    SELECT id FROM events_v2 e
    WHERE e.notified_at IS NULL AND delay_until <= (SELECT clock_timestamp() + $1::interval)
    ORDER BY delay_until, id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
`
	takeFreeSQL = `UPDATE events_v2 e SET notified_at = clock_timestamp()
WHERE e.id = ANY (ARRAY(SELECT id FROM free))
RETURNING e.id, e.canvas_id`
)

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
    ` + takeFreeSQL + `
)
SELECT progress.canvas_id, taken.id, taken.canvas_id
FROM (
    SELECT CASE
        WHEN (SELECT count(*) FROM due) = $3 THEN (SELECT canvas_id FROM due ORDER BY n DESC LIMIT 1)
        WHEN (SELECT max(n) FROM canvases) = $4 THEN (SELECT canvas_id FROM canvases ORDER BY n DESC LIMIT 1)
    END AS canvas_id
) AS progress LEFT JOIN taken ON true`

// The same statements that only find what they would take, and leave out the given events: those
// that wait because the database refuses to write their rows, so that these fill no page.
var (
	findOldestSQL = strings.Replace(freeOldestSQL, "e.notified_at IS NULL", "e.notified_at IS NULL AND e.id <> ALL ($3::bigint[])", 1) + findFreeSQL
	findSharesSQL = strings.NewReplacer("e.notified_at IS NULL AND e.canvas_id >= due.canvas_id",
		"e.notified_at IS NULL AND e.id <> ALL ($5::bigint[]) AND e.canvas_id >= due.canvas_id", takeFreeSQL, findFreeSQL).Replace(takeSharesSQL)
)

const findFreeSQL = `SELECT e.id, e.canvas_id FROM events_v2 e WHERE e.id = ANY (ARRAY(SELECT id FROM free))`

const takePendingSQL = `
UPDATE events_v2 e SET notified_at = clock_timestamp()
FROM (
    SELECT id FROM events_v2
    WHERE id = ANY ($1::bigint[]) AND notified_at IS NULL AND delay_until <= clock_timestamp() + $2::interval
    ORDER BY id
    FOR UPDATE SKIP LOCKED
) AS free
WHERE e.id = free.id
RETURNING e.id, e.canvas_id`

// takingPending takes the pending notifications of events due within a time.
func (s *Store) takingPending(ctx context.Context, taken *[]eventqueue.Notification, within time.Duration) func(ids []eventqueue.EventID) error {
	return func(ids []eventqueue.EventID) error {
		some, err := queryNotifications(ctx, s.pool, takePendingSQL, int64s(ids), within)
		if err == nil {
			*taken = append(*taken, some...)
		}
		return err
	}
}

// TakeDue implements maintenance.RelayStore.
func (s *Store) TakeDue(ctx context.Context, within time.Duration, limit int) ([]eventqueue.Notification, error) {
	taken, err := s.takeShares(ctx, within, limit)
	rest := limit - len(taken)
	if err = outcome(len(taken), err); err != nil && !refusal.Is(err) || rest == 0 {
		return taken, err
	}
	oldest, full, oldestErr := s.takeOldest(ctx, within, rest)
	if full || oldestErr == nil || refusal.Is(oldestErr) {
		s.due.mu.Lock()
		s.due.behind = full
		s.due.mu.Unlock()
	}
	taken = append(taken, oldest...)
	return taken, outcome(len(taken), err, oldestErr)
}

// takeOldest also reports whether it has found as many as it may take.
func (s *Store) takeOldest(ctx context.Context, within time.Duration, limit int) (taken []eventqueue.Notification, full bool, err error) {
	read := func(sql string, arguments ...any) (found []eventqueue.Notification, err error) {
		err = s.walk(ctx, sql, append([]any{within, limit}, arguments...), appendTo(&found))
		full = len(found) == limit
		return found, err
	}
	taken, err = s.takeDuePage(ctx, within, read, takeOldestSQL, findOldestSQL)
	return taken, full, err
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
	read := func(sql string, arguments ...any) (found []eventqueue.Notification, err error) {
		found, next, err = s.readShares(ctx, sql, append([]any{within, after, limit, max(limit, fewestCanvases)}, arguments...))
		return found, err
	}
	taken, err = s.takeDuePage(ctx, within, read, takeSharesSQL, findSharesSQL)
	if err == nil || refusal.Is(err) {
		s.due.mu.Lock()
		s.due.canvas = next
		s.due.mu.Unlock()
	}
	return taken, err
}

// readShares returns the next canvas, too.
func (s *Store) readShares(ctx context.Context, sql string, arguments []any) (found []eventqueue.Notification, next [16]byte, err error) {
	err = s.walk(ctx, sql, arguments, func(rows pgx.Rows) error {
		var last, canvas *[16]byte
		var id *eventqueue.EventID
		_, err := pgx.ForEachRow(rows, []any{&last, &id, &canvas}, func() error {
			if last != nil {
				next = *last
			}
			if id != nil {
				found = append(found, eventqueue.Notification{Event: *id, Canvas: *canvas})
			}
			return nil
		})
		return err
	})
	return found, next, err
}

// takeDuePage takes a page of due events with one statement, or finds it with the other and takes
// it around the rows that the database refuses to write.
func (s *Store) takeDuePage(ctx context.Context, within time.Duration, read func(sql string, arguments ...any) ([]eventqueue.Notification, error),
	takeSQL, findSQL string) ([]eventqueue.Notification, error) {
	return takeAround(&s.refused,
		func() ([]eventqueue.Notification, error) { return read(takeSQL) },
		func() ([]eventqueue.Notification, error) { return read(findSQL, int64s(s.refused.Waiting())) },
		func(taken *[]eventqueue.Notification) func(ids []eventqueue.EventID) error {
			return s.takingPending(ctx, taken, within)
		})
}
