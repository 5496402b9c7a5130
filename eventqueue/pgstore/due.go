package pgstore

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/internal/mayrun"
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

// A page is found first and then taken by the ids of its events, so that whoever takes it knows what a
// statement without an answer may have taken (I19). Events whose rows others hold are found as well,
// since to skip them would mean to lock all the others; they are made up for by free rows of the same
// canvas, when the page went from canvas to canvas, or else by the oldest.
// The given events are left out: those that wait because the database refuses to write their rows, so
// that these fill no page.
//
// The clock is read in a sub-select: as a value that does not change during the statement it can bound
// the scan of the index events_v2_pending.
//
// What is of high priority comes first, and at most $4 of low priority last. While the store is behind,
// these two come before the canvases.
var (
	findOldestSQL  = pendingSQL("", highPending, normalPending, lowPending)
	freeOldestSQL  = pendingSQL("FOR UPDATE SKIP LOCKED", highPending, normalPending, lowPending)
	findUnequalSQL = pendingSQL("", highPending, lowPending)
	freeUnequalSQL = pendingSQL("FOR UPDATE SKIP LOCKED", highPending, lowPending)
)

const (
	highPending   = "e.priority = 'high'"
	normalPending = "e.priority IS NULL"
	lowPending    = "e.priority = 'low'"
)

// pendingSQL finds pending notifications of several priorities, one after the other.
func pendingSQL(lock string, priorities ...string) string {
	parts := make([]string, len(priorities))
	for i, priority := range priorities {
		limit := "$2"
		if priority == lowPending {
			limit = "least($2, $4)"
		}
		parts[i] = `
SELECT * FROM (
    SELECT e.id, e.canvas_id, coalesce(` + lowPending + `, false) AS low FROM events_v2 e
    WHERE e.notified_at IS NULL AND ` + priority + ` AND delay_until <= (SELECT clock_timestamp() + $1::interval) AND e.id <> ALL ($3::bigint[])
    ORDER BY delay_until, id
    LIMIT ` + limit + ` ` + lock + `
) AS pending`
	}
	return strings.Join(parts, `
UNION ALL`) + `
LIMIT $2`
}

// canvases jumps along the index events_v2_pending_canvas from one canvas to the next.
// Each canvas with due events gets an equal part of the limit: with a limit of 500 and five such canvases, 100 of each. The events
// of a canvas are compared as rows, so that no other index has them in order.
const (
	findSharesSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT clock_timestamp() + $1::interval AS horizon
), canvases AS (
    SELECT $2::uuid AS canvas_id, 0 AS n
    UNION ALL
    SELECT following.canvas_id, canvases.n + 1
    FROM canvases CROSS JOIN LATERAL (
        SELECT e.canvas_id FROM events_v2 e
        WHERE e.notified_at IS NULL AND e.priority IS NULL AND e.canvas_id > canvases.canvas_id
        ORDER BY e.canvas_id LIMIT 1
    ) AS following
    WHERE canvases.n < $4
), due AS MATERIALIZED (
    SELECT canvas_id, n FROM canvases
    WHERE n > 0 AND (
        SELECT e.delay_until FROM events_v2 e
        WHERE e.notified_at IS NULL AND e.priority IS NULL AND e.canvas_id >= canvases.canvas_id
        ORDER BY e.canvas_id, e.delay_until, e.id LIMIT 1) <= (SELECT horizon FROM clock)
    ORDER BY n
    LIMIT $3
), found AS MATERIALIZED (
    SELECT share.id, share.canvas_id
    FROM due CROSS JOIN LATERAL (
        SELECT e.id, e.canvas_id FROM events_v2 e
        WHERE e.notified_at IS NULL AND e.priority IS NULL AND e.id <> ALL ($5::bigint[]) AND e.canvas_id >= due.canvas_id
          AND (e.canvas_id, e.delay_until) <= (due.canvas_id, (SELECT horizon FROM clock))
        ORDER BY e.canvas_id, e.delay_until, e.id
        LIMIT (SELECT $3 / count(*) FROM due)
    ) AS share
)
SELECT progress.canvas_id, found.id, found.canvas_id
FROM (
    SELECT CASE
        WHEN (SELECT count(*) FROM due) = $3 THEN (SELECT canvas_id FROM due ORDER BY n DESC LIMIT 1)
        WHEN (SELECT max(n) FROM canvases) = $4 THEN (SELECT canvas_id FROM canvases ORDER BY n DESC LIMIT 1)
    END AS canvas_id
) AS progress LEFT JOIN found ON true`

	// One canvas stands in $2 for each row of its share that is made up for.
	freeOfCanvasesSQL = `
SELECT share.id, share.canvas_id
FROM (SELECT canvas_id, count(*) AS missing FROM unnest($2::uuid[]) AS canvas_id GROUP BY canvas_id) AS part
CROSS JOIN LATERAL (
    SELECT e.id, e.canvas_id FROM events_v2 e
    WHERE e.notified_at IS NULL AND e.priority IS NULL AND e.id <> ALL ($3::bigint[]) AND e.canvas_id >= part.canvas_id
      AND (e.canvas_id, e.delay_until) <= (part.canvas_id, (SELECT clock_timestamp() + $1::interval))
    ORDER BY e.canvas_id, e.delay_until, e.id
    LIMIT part.missing
    FOR UPDATE SKIP LOCKED
) AS share`
)

// Each row is looked up by its id. The condition is none of a partial index: behind a backlog, such an
// index has everything that is pending.
const (
	isPendingSQL   = `num_nulls(e.notified_at) = 1 AND e.delay_until <= clock_timestamp() + $2::interval`
	takePendingSQL = `
WITH free AS MATERIALIZED (
    SELECT free.id FROM unnest($1::bigint[]) AS asked (id) CROSS JOIN LATERAL (
        SELECT e.id FROM events_v2 e WHERE e.id = asked.id AND ` + isPendingSQL + `
        FOR UPDATE SKIP LOCKED
    ) AS free
)
UPDATE events_v2 e SET notified_at = clock_timestamp()
WHERE e.id = ANY (ARRAY(SELECT id FROM free))
RETURNING e.id, e.canvas_id`
)

// takingPending takes the pending notifications of events due within a time.
func (s *Store) takingPending(ctx context.Context, taken *[]eventqueue.Notification, within time.Duration) func(ids []eventqueue.EventID) error {
	return func(ids []eventqueue.EventID) error {
		return committed(taken, func(some *[]eventqueue.Notification) error {
			return s.run(ctx, skipping, query{forms: forms{skips: takePendingSQL}, arguments: []any{int64s(ids), within}, read: appendTo(some)})
		})
	}
}

// TakeDue implements maintenance.RelayStore.
func (s *Store) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	if err := s.lookAtLow(ctx); err != nil {
		return nil, err
	}
	take := dueTake{store: s, within: within, await: await}
	taken, err := s.takeShares(ctx, take, limit)
	rest := limit - len(taken)
	if err = outcome(len(taken), err); err != nil && !refusal.Is(err) || rest <= 0 {
		return taken, err
	}
	oldest, full, oldestErr := s.takePending(ctx, take, findOldestSQL, freeOldestSQL, rest, rest)
	if full || oldestErr == nil || refusal.Is(oldestErr) {
		s.due.mu.Lock()
		s.due.behind = full
		s.due.mu.Unlock()
	}
	taken = append(taken, oldest...)
	return taken, outcome(len(taken), err, oldestErr)
}

// takePending takes what two statements of pendingSQL find, at most so many of them of low priority, and
// reports whether they have found as many as they may.
func (s *Store) takePending(ctx context.Context, take dueTake, find, free string, limit, mostLow int) (taken []eventqueue.Notification, full bool, err error) {
	without := s.refused.Waiting()
	room := min(s.low.room(), mostLow)
	low := map[eventqueue.EventID]bool{}
	pending := func(sql string, limit, room int, without []eventqueue.EventID) (found []eventqueue.Notification, err error) {
		err = s.walk(ctx, sql, []any{take.within, limit, int64s(without), room}, func(rows pgx.Rows) error {
			var n eventqueue.Notification
			var isLow bool
			_, err := pgx.ForEachRow(rows, []any{&n.Event, (*[16]byte)(&n.Canvas), &isLow}, func() error {
				found = append(found, n)
				if isLow {
					low[n.Event] = true
				}
				return nil
			})
			return err
		})
		full = len(found) == limit
		return found, err
	}
	found, err := pending(find, limit, room, without)
	if err != nil {
		return nil, false, err
	}
	more := len(low) == room || full
	taken, err = take.page(ctx, found, without, func(held []eventqueue.Notification, without []eventqueue.EventID) ([]eventqueue.Notification, error) {
		return pending(free, len(held), 0, without)
	})
	s.low.letGo(taken, low, more)
	return taken, full, err
}

// shareOfLow is the part of a page that may be of low priority while the store is behind.
const shareOfLow = 10

// takeShares takes nothing while the store is not behind.
func (s *Store) takeShares(ctx context.Context, take dueTake, limit int) (taken []eventqueue.Notification, err error) {
	s.due.mu.Lock()
	behind, after := s.due.behind, s.due.canvas
	s.due.mu.Unlock()
	if !behind {
		return nil, nil
	}
	unequal, full, unequalErr := s.takePending(ctx, take, findUnequalSQL, freeUnequalSQL, limit, max(limit/shareOfLow, 1))
	if unequalErr != nil && !refusal.Is(unequalErr) || full {
		return unequal, unequalErr
	}
	defer func() { taken, err = append(unequal, taken...), outcome(len(unequal)+len(taken), unequalErr, err) }()
	limit -= len(unequal)
	without := s.refused.Waiting()
	found, next, err := s.findShares(ctx, take.within, after, limit, max(limit, fewestCanvases), int64s(without))
	if err != nil {
		return nil, err
	}
	taken, err = take.page(ctx, found, without, func(held []eventqueue.Notification, without []eventqueue.EventID) (found []eventqueue.Notification, err error) {
		err = s.walk(ctx, freeOfCanvasesSQL, []any{take.within, canvasesOf(held), int64s(without)}, appendTo(&found))
		return found, err
	})
	if err == nil || refusal.Is(err) {
		s.due.mu.Lock()
		s.due.canvas = next
		s.due.mu.Unlock()
	}
	return taken, err
}

// canvasesOf has the canvas of each event.
func canvasesOf(events []eventqueue.Notification) [][16]byte {
	canvases := make([][16]byte, len(events))
	for i, n := range events {
		canvases[i] = n.Canvas
	}
	return canvases
}

// findShares also returns the canvas after which the next call goes on.
func (s *Store) findShares(ctx context.Context, arguments ...any) (found []eventqueue.Notification, next [16]byte, err error) {
	err = s.walk(ctx, findSharesSQL, arguments, func(rows pgx.Rows) error {
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

// dueTake takes due events that were found.
type dueTake struct {
	store  *Store
	within time.Duration
	await  maintenance.AwaitTake
}

// makeUp finds free rows in place of those that others hold, without the given ones.
type makeUp func(held []eventqueue.Notification, without []eventqueue.EventID) ([]eventqueue.Notification, error)

// page takes what was found, and others in place of what others hold. What is returned was taken,
// whatever the error is.
func (d dueTake) page(ctx context.Context, found []eventqueue.Notification, without []eventqueue.EventID, others makeUp) (taken []eventqueue.Notification, err error) {
	for {
		some, err := d.found(ctx, found)
		taken = append(taken, some...)
		if err != nil || len(some) == len(found) {
			return taken, err
		}
		held := notTaken(found, some) // by others, or a trigger of the table leaves the rows as they are
		for _, n := range held {
			without = append(without, n.Event)
		}
		if found, err = others(held, without); err != nil {
			return taken, err
		}
	}
}

// notTaken returns the events that were found and not taken.
func notTaken(found, taken []eventqueue.Notification) (rest []eventqueue.Notification) {
	was := make(map[eventqueue.EventID]bool, len(taken))
	for _, n := range taken {
		was[n.Event] = true
	}
	for _, n := range found {
		if !was[n.Event] {
			rest = append(rest, n)
		}
	}
	return rest
}

// found takes events that were found, around the rows that the database refuses to write.
func (d dueTake) found(ctx context.Context, found []eventqueue.Notification) (taken []eventqueue.Notification, err error) {
	if len(found) == 0 {
		return nil, nil
	}
	err = around(&d.store.refused, inTurn(found), awaited(d.await, d.store.takingPending(ctx, &taken, d.within)))
	return taken, err
}

// LowRest implements maintenance.LowStore.
func (s *Store) LowRest() time.Duration { return s.low.restLeft() }

// waitingLowSQL: what has begun, or cannot begin, waits for no worker that is free. A worker that was killed
// may stand there as one that has the handler until a relay has missed it.
var waitingLowSQL = `
SELECT e.id
FROM (SELECT clock_timestamp() AS now) AS clock, unnest($1::bigint[]) AS gone (id) CROSS JOIN LATERAL (
    SELECT * FROM events_v2 e WHERE e.id = gone.id OFFSET 0
) AS e
WHERE e.attempts = 0 AND e.locked_at IS NULL AND e.notified_at IS NOT NULL AND ` + mayrun.DueSQL("e.delay_until", "clock.now") + ` AND ` + mayrun.NotBehindSQL("e.group_state") + `
  AND NOT ((SELECT EXISTS (SELECT FROM scheduling_rules)) AND ` + mayrun.RuledSQL("e") + `)
  AND (e.notified_at > clock.now - interval '10 seconds' OR EXISTS (
      SELECT FROM event_workers w
      WHERE w.stopped_at IS NULL AND w.missed_at IS NULL AND w.handlers @> jsonb_build_array(jsonb_build_object('module', e.module, 'name', e.name))))`

// lookAtLow finds out which of the events that were let go still wait, if it is time.
func (s *Store) lookAtLow(ctx context.Context) error {
	gone, isTime := s.low.toAsk(time.Now())
	if !isTime {
		return nil
	}
	var waiting []eventqueue.EventID
	if len(gone) > 0 {
		err := s.walk(ctx, waitingLowSQL, []any{int64s(gone)}, func(rows pgx.Rows) (err error) {
			waiting, err = pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
			return err
		})
		if err != nil {
			return err
		}
	}
	s.low.found(waiting, time.Now())
	return nil
}
