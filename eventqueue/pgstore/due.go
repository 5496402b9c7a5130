package pgstore

import (
	"context"
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
// the scan of the index events_v2_pending. A row without an event says that some with a priority are pending,
// so that an idle relay needs no statement to learn that there are none.
const (
	findOldestSQL = `
SELECT 0 AS id, '00000000-0000-0000-0000-000000000000'::uuid AS canvas_id
WHERE EXISTS (SELECT FROM events_v2 e WHERE e.notified_at IS NULL AND e.priority IS NOT NULL)
UNION ALL
(` + oldestSQL + `)`
	freeOldestSQL = oldestSQL + `
FOR UPDATE SKIP LOCKED`
	oldestSQL = `
SELECT e.id, e.canvas_id FROM events_v2 e
WHERE e.notified_at IS NULL AND e.priority IS NULL AND delay_until <= (SELECT clock_timestamp() + $1::interval) AND e.id <> ALL ($3::bigint[])
ORDER BY delay_until, id
LIMIT $2`
)

// prioritizedSQL finds pending notifications of the priority $2: of each scope, from the one after $4 to $6 on, as many as
// the scope has room for, of the lists $7 to $10 or else $11, and one more, which says that there are more.
const prioritizedSQL = `
WITH RECURSIVE scopes AS (
    SELECT $4::uuid AS canvas_id, $5::text AS module, $6::text AS name, 0 AS n
    UNION ALL
    SELECT following.canvas_id, following.module, following.name, scopes.n + 1
    FROM scopes CROSS JOIN LATERAL (
        SELECT e.canvas_id, e.module, e.name FROM events_v2 e
        WHERE e.notified_at IS NULL AND e.priority = $2::event_priority
          AND (e.canvas_id, e.module, e.name) > (scopes.canvas_id, scopes.module, scopes.name)
        ORDER BY e.canvas_id, e.module, e.name LIMIT 1
    ) AS following
    WHERE scopes.n < $12
)
SELECT scopes.canvas_id, scopes.module, scopes.name, roomy.room, pending.id
FROM scopes CROSS JOIN LATERAL (
    SELECT coalesce((
        SELECT r.room FROM unnest($7::uuid[], $8::text[], $9::text[], $10::int[]) AS r (canvas_id, module, name, room)
        WHERE (r.canvas_id, r.module, r.name) = (scopes.canvas_id, scopes.module, scopes.name)), $11::int) AS room
) AS roomy LEFT JOIN LATERAL (
    SELECT e.id FROM events_v2 e
    WHERE e.notified_at IS NULL AND e.priority = $2::event_priority AND e.id <> ALL ($3::bigint[])
      AND e.canvas_id = scopes.canvas_id AND e.module = scopes.module AND e.name = scopes.name
      AND e.delay_until <= (SELECT clock_timestamp() + $1::interval)
    ORDER BY e.delay_until, e.id
    LIMIT roomy.room + 1
) AS pending ON true
WHERE scopes.n > 0
ORDER BY scopes.n`

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

// takePendingSQL takes pending notifications of events due within $2, which takeUrgentSQL does but for those of
// low priority. Each row is looked up by its id. The condition is none of a partial index: behind a backlog, such an
// index has everything that is pending.
var (
	takePendingSQL = takeSQL(isPendingSQL)
	takeUrgentSQL  = takeSQL(isPendingSQL + ` AND e.priority IS DISTINCT FROM 'low'`)
)

const isPendingSQL = `num_nulls(e.notified_at) = 1 AND e.delay_until <= clock_timestamp() + $2::interval`

func takeSQL(pending string) string {
	return `
WITH free AS MATERIALIZED (
    SELECT free.id FROM unnest($1::bigint[]) AS asked (id) CROSS JOIN LATERAL (
        SELECT e.id FROM events_v2 e WHERE e.id = asked.id AND ` + pending + `
        FOR UPDATE SKIP LOCKED
    ) AS free
)
UPDATE events_v2 e SET notified_at = clock_timestamp()
WHERE e.id = ANY (ARRAY(SELECT id FROM free))
RETURNING e.id, e.canvas_id`
}

// takingPending takes the pending notifications of events due within a time.
func (s *Store) takingPending(ctx context.Context, sql string, taken *[]eventqueue.Notification, within time.Duration) func(ids []eventqueue.EventID) error {
	return func(ids []eventqueue.EventID) error {
		return committed(taken, func(some *[]eventqueue.Notification) error {
			return s.run(ctx, skipping, query{forms: forms{skips: sql}, arguments: []any{int64s(ids), within}, read: appendTo(some)})
		})
	}
}

// TakeDue implements maintenance.RelayStore.
func (s *Store) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) (taken []eventqueue.Notification, err error) {
	take := dueTake{store: s, within: within, await: await}
	defer func() { s.ranks.credit(len(taken)) }()
	var errs []error
	add := func(some []eventqueue.Notification, err error) (goesOn bool) {
		taken = append(taken, some...)
		errs = append(errs, err)
		return (err == nil || refusal.Is(err)) && len(taken) < limit
	}
	s.due.mu.Lock()
	behind := s.due.behind
	s.due.mu.Unlock()
	known := behind || s.ranks.areThere()
	if known && !add(s.takeHigh(ctx, take, limit, behind)) ||
		behind && !add(s.takeLow(ctx, take, min(limit-len(taken), s.ranks.credit(0)))) ||
		behind && !add(s.takeShares(ctx, take, limit-len(taken))) {
		return taken, outcome(len(taken), errs...)
	}
	oldest, full, oldestErr := s.takeOldest(ctx, take, limit-len(taken))
	if full || oldestErr == nil || refusal.Is(oldestErr) {
		s.due.mu.Lock()
		s.due.behind = full
		s.due.mu.Unlock()
	}
	if add(oldest, oldestErr) && s.ranks.areThere() && (known || add(s.takeHigh(ctx, take, limit-len(taken), false))) && !behind {
		add(s.takeLow(ctx, take, limit-len(taken)))
	}
	return taken, outcome(len(taken), errs...)
}

// takeOldest also reports whether it has found as many as it may take.
func (s *Store) takeOldest(ctx context.Context, take dueTake, limit int) (taken []eventqueue.Notification, full bool, err error) {
	without := s.refused.Waiting()
	oldest := func(sql string, limit int, without []eventqueue.EventID) (found []eventqueue.Notification, err error) {
		err = s.walk(ctx, sql, []any{take.within, limit, int64s(without)}, appendTo(&found))
		full = len(found) >= limit
		return found, err
	}
	found, err := oldest(findOldestSQL, limit, without)
	if err != nil {
		return nil, false, err
	}
	if s.ranks.see(len(found) > 0 && found[0].Event == 0) {
		found = found[1:]
		full = len(found) == limit
	}
	taken, err = take.page(ctx, found, without, func(held []eventqueue.Notification, without []eventqueue.EventID) ([]eventqueue.Notification, error) {
		return oldest(freeOldestSQL, len(held), without)
	})
	return taken, full, err
}

func (s *Store) takeShares(ctx context.Context, take dueTake, limit int) (taken []eventqueue.Notification, err error) {
	s.due.mu.Lock()
	after := s.due.canvas
	s.due.mu.Unlock()
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
	err = around(&d.store.refused, inTurn(found), awaited(d.await, d.store.takingPending(ctx, takePendingSQL, &taken, d.within)))
	return taken, err
}

// LowRest implements maintenance.LowStore.
func (s *Store) LowRest() time.Duration { return s.ranks.restLeft(time.Now()) }

// takeHigh takes half of a page at most while the store is behind, and of each scope a part.
func (s *Store) takeHigh(ctx context.Context, take dueTake, limit int, behind bool) ([]eventqueue.Notification, error) {
	if behind {
		limit = s.ranks.half(limit)
	}
	if limit <= 0 {
		return nil, nil
	}
	return s.takePrioritized(ctx, take, s.ranks.highPage(limit))
}

// takeLow takes what there is room for. If it cannot learn that, it takes nothing, and the others go on.
func (s *Store) takeLow(ctx context.Context, take dueTake, limit int) ([]eventqueue.Notification, error) {
	if limit <= 0 {
		return nil, nil
	}
	if gone, isTime := s.ranks.toAsk(time.Now()); isTime {
		var waiting []eventqueue.EventID
		err := s.walk(ctx, waitingLowSQL, []any{int64s(gone)}, func(rows pgx.Rows) (err error) {
			waiting, err = pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
			return err
		})
		if err != nil {
			s.ranks.found(nil, nil, time.Now()) // it is asked again
			return nil, nil                     //nolint:nilerr // the others go on
		}
		s.ranks.found(gone, waiting, time.Now())
	}
	return s.takePrioritized(ctx, take, s.ranks.lowPage(limit))
}

// waitingLowSQL are those of some events that a worker could begin: it is not known that they have to wait for
// something else.
var waitingLowSQL = `
SELECT e.id FROM unnest($1::bigint[]) AS gone (id) CROSS JOIN LATERAL (SELECT * FROM events_v2 e WHERE e.id = gone.id OFFSET 0) AS e
WHERE e.attempts = 0 AND e.locked_at IS NULL AND e.notified_at IS NOT NULL AND ` + mayrun.DueSQL("e.delay_until", "clock_timestamp()") + ` AND ` + mayrun.NotBehindSQL("e.group_state")

// takePrioritized takes what a page has room for. What others hold is left for later.
func (s *Store) takePrioritized(ctx context.Context, take dueTake, page rankedPage) (taken []eventqueue.Notification, err error) {
	without := int64s(s.refused.Waiting())
	err = s.walk(ctx, prioritizedSQL, append([]any{take.within, page.priority, without}, page.arguments()...), func(rows pgx.Rows) error {
		var scope eventqueue.Scope
		var room int
		var id *eventqueue.EventID
		_, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&scope.Canvas), &scope.Module, &scope.Name, &room, &id}, func() error {
			page.add(scope, room, id)
			return nil
		})
		return err
	})
	if err != nil || len(page.found) == 0 {
		s.ranks.took(&page, nil, time.Now())
		return nil, err
	}
	taken, err = take.page(ctx, page.found, nil, func([]eventqueue.Notification, []eventqueue.EventID) ([]eventqueue.Notification, error) {
		return nil, nil
	})
	s.ranks.took(&page, taken, time.Now())
	return taken, err
}
