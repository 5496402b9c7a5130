package pgstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// A row that somebody is writing is skipped: it is being claimed, finished or
// notified, and if that comes to nothing the relay finds it by its age.
const oweSQL = `
UPDATE events_v2 e SET notified_at = NULL
FROM (SELECT id FROM events_v2 WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED) AS free
WHERE e.id = free.id`

// Owe implements eventqueue.OwedStore.
func (s *Store) Owe(ctx context.Context, ids []eventqueue.EventID) error {
	_, err := s.pool.Exec(ctx, oweSQL, int64s(ids))
	return err
}

const takeOwedSQL = `
UPDATE events_v2 e SET notified_at = clock_timestamp()
FROM (
    SELECT id FROM events_v2
    WHERE id = ANY ($1::bigint[]) AND notified_at IS NULL AND delay_until <= clock_timestamp() + $2::interval
    ORDER BY id
    FOR UPDATE SKIP LOCKED
) AS free
WHERE e.id = free.id
RETURNING e.id, e.canvas_id`

// TakeOwed implements eventqueue.OwedStore.
func (s *Store) TakeOwed(ctx context.Context, ids []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return queryNotifications(ctx, s.pool, takeOwedSQL, int64s(ids), eventqueue.MaxRequeue)
}

// The clock is read in a sub-select: as a value that does not change during the
// statement it can bound the scan of the index events_v2_owed. free is read once,
// whatever the plan: as the inner side of a loop it would skip the rows that it
// took before, and take as many others.
const takeDueSQL = `
WITH free AS MATERIALIZED (
    SELECT id FROM events_v2
    WHERE notified_at IS NULL AND delay_until <= (SELECT clock_timestamp() + $1::interval)
    ORDER BY delay_until
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
UPDATE events_v2 e SET notified_at = clock_timestamp()
WHERE e.id = ANY (ARRAY(SELECT id FROM free))
RETURNING e.id, e.canvas_id`

// TakeDue implements eventqueue.RelayStore.
func (s *Store) TakeDue(ctx context.Context, within time.Duration, limit int) ([]eventqueue.Notification, error) {
	return queryNotifications(ctx, s.pool, takeDueSQL, within, limit)
}

// MaxQuietFactor bounds the growing interval between two notifications of an
// event that waits: it is at most so many times the first one.
const MaxQuietFactor = 10

// page is bounded by the rows looked at, not by those found, so that a backlog
// of paused or delayed events makes no statement long. rung is when the event
// should have been noticed last: by its notification, by falling due, or by its
// lock expiring. A row that was notified since the page was read is left.
const takeLostSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT id, canvas_id, module, name, locked_at, notified_at, line, ordering_key,
        greatest(delay_until, enqueued_at) AS due,
        greatest(delay_until, enqueued_at, notified_at, locked_at + $4::interval) AS rung
    FROM events_v2
    WHERE id > $1
    ORDER BY id
    LIMIT $2
), lost AS MATERIALIZED (
    SELECT id, notified_at
    FROM page, clock
    WHERE notified_at IS NOT NULL
      AND line <> 1
      AND due <= now
      AND (locked_at IS NULL OR locked_at <= now - $4::interval)
      AND now - rung > least(greatest($3::interval, notified_at - due), $5 * $3::interval)
      AND NOT EXISTS (
          SELECT FROM scheduling_rules r
          WHERE r.canvas_id = page.canvas_id AND r.event_space = page.module AND r.handler_name = page.name)
), ` + mendSQL + `, taken AS (
    UPDATE events_v2 e SET notified_at = clock.now
    FROM clock, (
        SELECT e.id
        FROM events_v2 e JOIN lost USING (id, notified_at)
        ORDER BY e.id
        FOR UPDATE OF e SKIP LOCKED
    ) AS free
    WHERE e.id = free.id
    RETURNING e.id, e.canvas_id
), told AS (
    SELECT id, canvas_id FROM taken
    UNION ALL
    SELECT id, NULL FROM orphans
    UNION ALL
    SELECT id, NULL FROM stalled
)
SELECT progress.next, told.id, told.canvas_id
FROM (SELECT CASE WHEN count(*) = $2 THEN max(id) END AS next FROM page) AS progress LEFT JOIN told ON true`

// TakeLost implements eventqueue.RelayStore. With what it finds, turns in lines are
// given that were lost.
func (s *Store) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, quiet, lockTimeout time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	found, next, err := s.takePage(ctx, takeLostSQL, after, limit, quiet, lockTimeout, MaxQuietFactor)
	if err != nil {
		return nil, 0, err
	}
	var stuck []eventqueue.EventID
	taken := slices.DeleteFunc(found, func(n eventqueue.Notification) bool {
		if n.Canvas == (eventqueue.CanvasID{}) {
			stuck = append(stuck, n.Event)
		}
		return n.Canvas == (eventqueue.CanvasID{})
	})
	mended, err := s.mend(ctx, stuck, lockTimeout)
	if err != nil {
		return nil, 0, err
	}
	return append(taken, mended...), next, nil
}

// takePage runs a statement that returns (next, id, canvas_id), with a row for
// next alone when nothing was taken.
func (s *Store) takePage(ctx context.Context, sql string, args ...any) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: sql},
		arguments: args,
		read: func(rows pgx.Rows) error {
			var (
				last   *eventqueue.EventID
				id     *eventqueue.EventID
				canvas *[16]byte
			)
			_, err := pgx.ForEachRow(rows, []any{&last, &id, &canvas}, func() error {
				if last != nil {
					next = *last
				}
				if id != nil {
					n := eventqueue.Notification{Event: *id}
					if canvas != nil {
						n.Canvas = *canvas
					}
					taken = append(taken, n)
				}
				return nil
			})
			return err
		},
	})
	return taken, next, err
}

// Listen implements eventqueue.RelayStore, on a connection of its own.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("connect to listen: %w", err)
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = conn.Close(closeCtx) // nothing is in flight on it
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+owedChannel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	wake() // for what was committed before
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("wait for a wake-up: %w", err)
		}
		wake()
	}
}
