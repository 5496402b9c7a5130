package pgstore

import (
	"context"
	"math"
	"slices"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/mayrun"
)

// A locked event is notified as well: the lock may have been left by a worker that
// died, and no notification is sent when it expires.
var takeWaitingSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT id
    FROM events_v2
    WHERE canvas_id = $1 AND module = $2 AND name = $3 AND id > $4 AND id <= $9
    ORDER BY id
    LIMIT $5
), taken AS (
    UPDATE events_v2 e SET notified_at = clock.now
    FROM clock, (
        SELECT e.id
        FROM events_v2 e, clock
        WHERE e.id IN (SELECT id FROM page)
          AND e.group_state <> 1 -- an event that waits in a group is notified when the group advances to it
          AND e.delay_until <= clock.now + $7::interval
          AND (e.notified_at IS NULL AND e.priority IS DISTINCT FROM 'low' OR e.notified_at < $6) -- a low one is let go by the relay
          AND ($8 = '' OR e.modifier = $8) AND NOT ((SELECT EXISTS (SELECT FROM scheduling_rules)) AND ` + mayrun.RuledSQL("e") + `)
        ORDER BY e.id
        FOR UPDATE OF e SKIP LOCKED
    ) AS free
    WHERE e.id = free.id
    RETURNING e.id, e.canvas_id
)
SELECT progress.next, taken.id, taken.canvas_id
FROM (SELECT CASE WHEN count(*) = $5 THEN max(id) END AS next FROM page) AS progress LEFT JOIN taken ON true`

// takeFoundWaitingSQL takes those of the given events that still wait, and findWaitingSQL finds the
// events of a page.
var takeFoundWaitingSQL = strings.Replace(takeWaitingSQL, "AND id > $4", "AND id = ANY ($4::bigint[])", 1)

const findWaitingSQL = `
WITH page AS MATERIALIZED (
    SELECT id, canvas_id
    FROM events_v2
    WHERE canvas_id = $1 AND module = $2 AND name = $3 AND id > $4 AND id <= $6
    ORDER BY id
    LIMIT $5
)
SELECT (SELECT CASE WHEN count(*) = $5 THEN max(id) END FROM page), id, canvas_id FROM page`

// TakeWaiting implements operate.RuleStore.
func (s *Store) TakeWaiting(ctx context.Context, from operate.Waiting, limit int) (waiting []eventqueue.Notification, next eventqueue.EventID, err error) {
	of := []any{[16]byte(from.Canvas), from.Module, from.Name}
	last := from.UpTo
	if last == 0 {
		last = math.MaxInt64
	}
	which := []any{from.Since, eventqueue.MaxRequeue, from.Modifier, last}
	waiting, err = takeAround(&s.refused, nil,
		func() (taken []eventqueue.Notification, err error) {
			taken, next, err = s.takePage(ctx, takeWaitingSQL, slices.Concat(of, []any{from.After, limit}, which)...)
			return taken, err
		},
		func() (found []eventqueue.Notification, err error) {
			found, next, err = s.takePage(ctx, findWaitingSQL, slices.Concat(of, []any{from.After, limit, last})...)
			return found, err
		},
		func(taken *[]eventqueue.Notification) func(ids []eventqueue.EventID) error {
			return func(ids []eventqueue.EventID) error {
				some, _, err := s.takePage(ctx, takeFoundWaitingSQL, slices.Concat(of, []any{int64s(ids), len(ids)}, which)...)
				if err == nil {
					*taken = append(*taken, some...)
				}
				return err
			}
		})
	return waiting, next, outcome(len(waiting), err)
}
