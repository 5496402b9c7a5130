package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/attributes"
	"eventsv2/internal/mayrun"
)

const lastQueuedSQL = `SELECT coalesce(max(id), 0) FROM events_v2`

// LastQueued implements operate.SelectStore: it bounds a walk over events_v2 that does not chase what
// is emitted meanwhile.
func (s *Store) LastQueued(ctx context.Context) (last eventqueue.EventID, err error) {
	err = s.pool.QueryRow(ctx, lastQueuedSQL).Scan(&last)
	return last, err
}

// A page is bounded by the events that are read, not by those that are selected: so no statement
// takes longer where few of many are. from has the columns and
// the table; failure, at and also are the error and the time of an event e, and what else it is
// selected by.
func selectPageSQL(from, failure, at, also string) string {
	return `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT ` + from + ` WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3
)
SELECT ARRAY(
        SELECT e.id FROM page e CROSS JOIN clock
        WHERE ($4::uuid IS NULL OR e.canvas_id = $4) AND ($5::text = '' OR e.module = $5) AND ($6::text = '' OR e.name = $6) AND ($7::text = '' OR e.modifier = $7)
          AND ($8::text = '' OR e.attributes @> nullif($8, '')::jsonb)
          AND ($9::interval IS NULL OR ` + at + ` <= clock.now - $9)
          AND ($10::interval IS NULL OR ` + at + ` > clock.now - $10)
          AND ($11::text = '' OR strpos(` + failure + `, $11) > 0)
          AND ` + also + `
        ORDER BY e.id),
    (SELECT CASE WHEN count(*) = $3 THEN max(id) ELSE 0 END FROM page)`
}

var selectSQL = selectPageSQL("id, canvas_id, module, name, modifier, attributes, enqueued_at, delay_until, locked_at, group_state FROM events_v2",
	`(SELECT a.error FROM event_attempts a WHERE a.event_id = e.id ORDER BY a.attempt DESC LIMIT 1)`,
	"e.enqueued_at", `($12::text = '' OR $12 =`+mayrun.StateSQL(mayrun.RuleSQL("e"), "clock.now", mayrun.ValidForSQL)+`)`)

// Select implements operate.SelectStore.
func (s *Store) Select(ctx context.Context, filter operate.EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error) {
	return s.selectPage(ctx, selectSQL, filter, after, last, limit, string(filter.State))
}

var selectLoggedSQL = selectPageSQL("id, canvas_id, module, name, modifier, attributes, status, last_error, created_at FROM event_log",
	"e.last_error", "e.created_at", "e.status::text = upper($12::text)")

// SelectLogged implements operate.ChangeStore.
func (s *Store) SelectLogged(ctx context.Context, filter operate.EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error) {
	state := filter.State
	if state == "" {
		state = operate.StateFailed
	}
	return s.selectPage(ctx, selectLoggedSQL, filter, after, last, limit, string(state))
}

func (s *Store) selectPage(ctx context.Context, sql string, filter operate.EventFilter, after, last eventqueue.EventID, limit int, more ...any) (ids []eventqueue.EventID, next eventqueue.EventID, err error) {
	var canvas *[16]byte
	if filter.Canvas != nil {
		canvas = (*[16]byte)(filter.Canvas)
	}
	arguments := append([]any{int64(after), int64(last), limit, canvas, filter.Module, filter.Name, filter.Modifier,
		attributes.Encode(filter.Attributes), givenAge(filter.OlderThan), givenAge(filter.NewerThan), filter.Error}, more...)
	err = s.walk(ctx, sql, arguments, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&ids, &next}, func() error { return nil })
		return err
	})
	return ids, next, err
}

func givenAge(age time.Duration) *time.Duration {
	if age == 0 {
		return nil
	}
	return &age
}
