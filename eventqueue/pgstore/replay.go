package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/attributes"
	"eventsv2/internal/refusal"
)

// A replay emits events of event_log again: with the value byte for byte, the attributes and the ordering
// key, and with what it repeats in an attribute. A unique key is not in event_log; a parent did not emit
// this one; and the trace is that of the first emit. They are due one after the other: the first now, or
// when the last of those before them is. The ids and the times have the order of the first ids. Their
// notifications are pending.
const replaySQL = `
WITH clock AS MATERIALIZED (
    SELECT now, greatest(now, $3::timestamptz) AS begins FROM (SELECT clock_timestamp() AS now) AS clock
), original AS MATERIALIZED (
    SELECT l.id, l.canvas_id, l.module, l.name, l.modifier, l.value, l.ordering_key,
        CASE WHEN jsonb_typeof(l.attributes) = 'object' THEN l.attributes - '` + attributes.Traceparent + `' ELSE '{}' END AS attributes,
        row_number() OVER (ORDER BY l.id) - 1 AS place
    FROM event_log l
    WHERE l.id = ANY ($1::bigint[]) AND l.status::text = upper($2::text)
), replayed AS (
    INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, group_state, ordering_key, attributes, by_sql)
    SELECT canvas_id, module, name, modifier, value, begins + place * $4::interval, now, NULL,
        CASE WHEN ordering_key IS NULL THEN 0 ELSE 3 END, coalesce(ordering_key, ''),
        attributes || jsonb_build_object('` + attributes.ReplayedFrom + `', id::text), NULL
    FROM original, clock
    ORDER BY place
    RETURNING id, canvas_id, module, name, (attributes ->> '` + attributes.ReplayedFrom + `')::bigint AS original
)
SELECT r.id, r.canvas_id, r.module, r.name, r.original, begins + (count(*) OVER ()) * $4::interval, now
FROM replayed r, clock
ORDER BY r.id`

// Replay implements operate.Store.
func (s *Store) Replay(ctx context.Context, ids []eventqueue.EventID, status string, from time.Time, every time.Duration,
	report func(tx pgsession.DB, some operate.Replayed) error) ([]refusal.Refused[eventqueue.EventID], error) {
	return refusal.Halve(func(ids []eventqueue.EventID) error {
		var some operate.Replayed
		err := s.changing(ctx, func(tx pgsession.DB) (err error) {
			if some, err = replay(ctx, tx, ids, status, from, every); err != nil || len(ids) == 0 {
				return err
			}
			if s.by != nil && len(some.IDs) > 0 {
				if err := s.auditReplay(ctx, tx, some); err != nil {
					return err
				}
			}
			return report(tx, some)
		})
		if err == nil && !some.Until.IsZero() {
			from = some.Until
		}
		return err
	}, ids)
}

func replay(ctx context.Context, tx pgsession.DB, ids []eventqueue.EventID, status string, from time.Time, every time.Duration) (some operate.Replayed, err error) {
	rows, err := tx.Query(ctx, replaySQL, int64s(ids), status, storableTime(from), every)
	if err != nil {
		return some, err
	}
	if len(ids) > 0 {
		some.Through = ids[len(ids)-1]
	}
	var id, original eventqueue.EventID
	var scope eventqueue.Scope
	var now time.Time
	_, err = pgx.ForEachRow(rows, []any{(*int64)(&id), (*[16]byte)(&scope.Canvas), &scope.Module, &scope.Name, (*int64)(&original), &some.Until, &now}, func() error {
		some.IDs, some.Originals, some.Scopes = append(some.IDs, id), append(some.Originals, original), append(some.Scopes, scope)
		some.Ahead = some.Until.Sub(now)
		return nil
	})
	return some, err
}

// auditReplay writes the row of events that were emitted again.
func (s *Store) auditReplay(ctx context.Context, tx pgsession.DB, some operate.Replayed) error {
	target := struct {
		Events    []eventqueue.EventID `json:"events"`
		Originals []eventqueue.EventID `json:"replayed_from"`
	}{some.IDs, some.Originals}
	change := audit.Change{Action: "replay", Canvas: &some.Scopes[0].Canvas, Target: target}
	for _, scope := range some.Scopes {
		if scope.Canvas != *change.Canvas {
			change.Canvas = nil
			break
		}
	}
	return audit.Write(ctx, tx, *s.by, change)
}
