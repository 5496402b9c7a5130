package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/mayrun"
)

// StuckReason is why an event seems stuck.
type StuckReason string

// The reasons. An event that a rule holds back is not stuck.
const (
	// StuckExpired: the event is due and its lock has expired. Its worker died or lost
	// contact; the next claim takes the event over.
	StuckExpired StuckReason = "expired"
	// StuckUnclaimed: the event has been due and free for longer than
	// StuckAfter.Unclaimed.
	StuckUnclaimed StuckReason = "unclaimed"
	// StuckRepeated: the event was claimed StuckAfter.Attempts times or more and has not
	// ended, whatever its state is. Runs count that failed, lost their worker, were
	// snoozed or were released.
	StuckRepeated StuckReason = "repeated"
)

// StuckReasons lists all reasons, in the order in which they are shown.
func StuckReasons() []StuckReason {
	return []StuckReason{StuckExpired, StuckUnclaimed, StuckRepeated}
}

// StuckAfter has the limits beyond which an event seems stuck.
type StuckAfter struct {
	// Unclaimed is how long a due event may be free.
	Unclaimed time.Duration
	// Attempts is how many claims of an event are too many.
	Attempts int32
}

// StuckEvent is an event that seems stuck, as it stood at AsOf.
type StuckEvent struct {
	QueuedEvent
	// Reasons are one or more, in the order of StuckReasons.
	Reasons []StuckReason
	// Since is when the first of the reasons began to apply: when the lock expired, when
	// the event became due, or, for StuckRepeated alone, when it was enqueued.
	Since time.Time
}

// stuckPage is how many events one statement reads.
const stuckPage = 20_000

// The page is bounded by the number of events that are read, not of those found. It
// follows the index events_v2_handler: $5 to $8 are the place after which it begins, and
// $9 is the last canvas. They are compared as rows, so that only this index has the
// order. A row that was written by SQL can have a delay_until of any year.
var stuckSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, ` + mayrun.ValidForSQL + ` AS valid_for
), page AS MATERIALIZED (
    SELECT id, canvas_id, module, name, modifier, retries, attempts, enqueued_at, locked_at, notified_at, group_state, ordering_key, coalesce(priority::text, '') AS priority,
        least(greatest(delay_until, '0001-01-01 00:00Z'), '9999-12-31 00:00Z') AS delay_until, octet_length(value) AS bytes
    FROM events_v2
    WHERE (canvas_id, module, name, id) > ($5::uuid, $6::text, $7::text, $8::bigint) AND canvas_id <= $9::uuid
    ORDER BY canvas_id, module, name, id
    LIMIT $10
), classified AS (
    SELECT e.*, clock.now, clock.valid_for, greatest(e.delay_until, e.enqueued_at) AS due,` + stateSQL + ` AS state
    FROM clock CROSS JOIN page AS e
    ` + ruleJoinSQL + `
    WHERE r.rule IS NULL AND ` + filterSQL + `
), stuck AS (
    SELECT classified.*, array_remove(ARRAY[
        CASE WHEN state = 'expired' THEN 'expired' END,
        CASE WHEN state = 'waiting' AND now - due > $4::interval THEN 'unclaimed' END,
        CASE WHEN attempts >= $11::integer THEN 'repeated' END], NULL) AS reasons
    FROM classified
    WHERE id > $12::bigint
), marked AS MATERIALIZED (
    SELECT e.*, 'unclaimed' = ANY (reasons) AND (NOT ` + mayrun.GroupMayRunSQL("e.group_state") + ` OR ` + mayrun.NeedsGroupSQL + `) AS joins
    FROM stuck AS e WHERE reasons <> '{}'
), shown AS (
    (SELECT * FROM marked WHERE NOT joins ORDER BY id LIMIT $13) UNION ALL SELECT * FROM marked WHERE joins
)
SELECT last.canvas_id, last.module, last.name, last.id,
    shown.id, shown.canvas_id, shown.module, shown.name, shown.modifier, shown.retries, shown.attempts, shown.delay_until,
    shown.enqueued_at, shown.locked_at, shown.notified_at, shown.bytes, shown.now, shown.state, shown.ordering_key, shown.priority, shown.valid_for, shown.reasons, shown.joins,
    CASE shown.reasons[1] WHEN 'expired' THEN shown.locked_at + shown.valid_for WHEN 'unclaimed' THEN shown.due ELSE shown.enqueued_at END
FROM (VALUES (1)) AS one
LEFT JOIN (
    SELECT canvas_id, module, name, id FROM page
    WHERE (SELECT count(*) FROM page) = $10
    ORDER BY canvas_id DESC, module DESC, name DESC, id DESC LIMIT 1
) AS last ON true
LEFT JOIN shown ON true`

// stuckPlace is where a page of stuckSQL ended.
type stuckPlace struct {
	canvas       *[16]byte
	module, name *string
	id           *int64
}

// Stuck returns at most limit of the events that seem stuck and whose ids are above after,
// in the order of their ids. An event that a rule holds back, or that waits for others of its ordering group,
// is not stuck. An event that is running or not due yet can only be StuckRepeated.
//
// Stuck reads all events of the filter's canvas, or of all canvases without one. It does
// so in statements of 20,000 events each, so an event may change between two of them. It
// blocks for all of these statements.
func (r *Reader) Stuck(ctx context.Context, filter Filter, long StuckAfter, after eventqueue.EventID, limit int) ([]StuckEvent, error) {
	var found []StuckEvent
	for from := firstStuckPlace(filter); ; {
		page, last, err := r.stuckPage(ctx, filter, long, from, after, limit)
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
		slices.SortFunc(found, func(a, b StuckEvent) int { return cmp.Compare(a.ID, b.ID) })
		found = found[:min(len(found), limit)]
		if last.id == nil {
			return found, nil
		}
		from = last
	}
}

// stuckPage returns the first limit stuck events of a page, and where the page ended.
func (r *Reader) stuckPage(ctx context.Context, filter Filter, long StuckAfter, from stuckPlace, after eventqueue.EventID, limit int) (stuck []StuckEvent, last stuckPlace, err error) {
	var found []candidate
	err = r.walk(ctx, stuckSQL, stuckArgs(filter, long, from, after, limit), func(rows pgx.Rows) error {
		found, last, err = readCandidates(rows)
		return err
	})
	if err != nil {
		return nil, last, err
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.ID, b.ID) })
	stuck, err = r.withoutWaiting(ctx, found, limit)
	return stuck, last, err
}

// candidate is an event that is stuck by its row.
type candidate struct {
	StuckEvent
	joins bool // an ordering group, at its next claim: whether it would have to wait there, Explain knows
}

// queue names the ordering groups of an event: what comes after one that waits in them waits, too.
type queue struct {
	canvas                    eventqueue.CanvasID
	module, name, orderingKey string
}

// withoutWaiting returns the first limit of those that would not have to wait in an ordering group that they have not joined yet.
// It asks about one event that waits in each of their groups, and about those that do not.
func (r *Reader) withoutWaiting(ctx context.Context, found []candidate, limit int) (stuck []StuckEvent, err error) {
	waiting := map[queue]bool{}
	for _, e := range found {
		if len(stuck) == limit {
			break
		}
		q := queue{e.Canvas, e.Module, e.Name, e.OrderingKey}
		if e.joins && !waiting[q] {
			if waiting[q], err = r.waitsInGroup(ctx, e.ID); err != nil {
				return nil, err
			}
		}
		if e.joins && waiting[q] {
			e.Reasons, e.Since = slices.DeleteFunc(e.Reasons, func(reason StuckReason) bool { return reason == StuckUnclaimed }), e.EnqueuedAt
		}
		if len(e.Reasons) > 0 {
			stuck = append(stuck, e.StuckEvent)
		}
	}
	return stuck, nil
}

// waitsInGroup reports whether an event would have to wait behind another one. In a group in which no event may run, none
// waits: that is what is stuck.
func (r *Reader) waitsInGroup(ctx context.Context, id eventqueue.EventID) (bool, error) {
	e, err := r.Explain(ctx, id)
	waits := func(reason Reason) bool { return reason.Label == machine.NotItsTurn }
	return slices.ContainsFunc(e.Reasons, waits) && e.Shown.Group != nil && e.Shown.Group.Next != 0, err
}

// firstStuckPlace is before all events of a filter.
func firstStuckPlace(filter Filter) stuckPlace {
	return stuckPlace{canvas: new(firstCanvas(filter)), module: new(""), name: new(""), id: new(int64)}
}

func firstCanvas(filter Filter) (canvas [16]byte) {
	if filter.Canvas != nil {
		canvas = *filter.Canvas
	}
	return canvas
}

// lastCanvas returns the canvas of the filter, or the highest UUID without one.
func lastCanvas(filter Filter) (canvas [16]byte) {
	if filter.Canvas != nil {
		return *filter.Canvas
	}
	for i := range canvas {
		canvas[i] = 0xff
	}
	return canvas
}

func stuckArgs(filter Filter, long StuckAfter, from stuckPlace, after eventqueue.EventID, limit int) []any {
	return filter.args(long.Unclaimed, from.canvas, from.module, from.name, from.id, lastCanvas(filter),
		stuckPage, long.Attempts, after, limit)
}

func readCandidates(rows pgx.Rows) (found []candidate, last stuckPlace, err error) {
	defer rows.Close()
	place := []any{&last.canvas, &last.module, &last.name, &last.id}
	for rows.Next() {
		var e candidate
		event := []any{&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.Retries, &e.Attempts, &e.DelayUntil,
			&e.EnqueuedAt, &e.LockedAt, &e.NotifiedAt, &e.ValueBytes, &e.AsOf, &e.State, &e.OrderingKey, &e.Priority, &e.LockValidFor, &e.Reasons, &e.joins, &e.Since}
		none := rows.RawValues()[len(place)] == nil // a page without a stuck event has one row, for its place
		if none {
			clear(event)
		}
		if err := rows.Scan(append(place, event...)...); err != nil {
			return nil, last, err
		}
		if !none {
			found = append(found, e)
		}
	}
	return found, last, rows.Err()
}
