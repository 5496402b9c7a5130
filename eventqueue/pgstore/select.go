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
// selected by. Of an error group, which SQL cannot name, the errors are returned as well.
func selectPageSQL(from, failure, at, also string) string {
	return `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT ` + from + ` id > $1 AND id <= $2 ORDER BY id LIMIT $3
), selected AS MATERIALIZED (
        SELECT e.id, CASE WHEN $12 THEN left(coalesce(` + failure + `, ''), $13) END AS error FROM page e CROSS JOIN clock
        WHERE ($4::uuid IS NULL OR e.canvas_id = $4) AND ($5::text = '' OR e.module = $5) AND ($6::text = '' OR e.name = $6) AND ($7::text = '' OR e.modifier = $7)
          AND ($8::text = '' OR e.attributes @> nullif($8, '')::jsonb)
          AND ($9::interval IS NULL OR ` + at + ` <= clock.now - $9)
          AND ($10::interval IS NULL OR ` + at + ` > clock.now - $10)
          AND ($11::text = '' OR strpos(` + failure + `, $11) > 0)
          AND ` + also + `
)
SELECT ARRAY(SELECT id FROM selected ORDER BY id), ARRAY(SELECT error FROM selected WHERE $12 ORDER BY id),
    (SELECT CASE WHEN count(*) = $3 THEN max(id) ELSE 0 END FROM page)`
}

var selectSQL = selectPageSQL("id, canvas_id, module, name, modifier, attributes, enqueued_at, delay_until, locked_at, group_state FROM events_v2 WHERE",
	`(SELECT a.error FROM event_attempts a WHERE a.event_id = e.id ORDER BY a.attempt DESC LIMIT 1)`,
	"e.enqueued_at", `($14::text = '' OR $14 =`+mayrun.StateSQL(mayrun.RuleSQL("e"), "clock.now", mayrun.ValidForSQL)+`)`)

// Select implements operate.SelectStore.
func (s *Store) Select(ctx context.Context, filter operate.EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error) {
	return s.selectPage(ctx, selectSQL, filter, after, last, limit, string(filter.State))
}

const loggedColumns = "id, canvas_id, module, name, modifier, attributes, status, last_error, created_at FROM event_log WHERE "

var (
	// The index event_log_status has no completed events.
	selectUnsuccessfulSQL = selectPageSQL(loggedColumns+"status <> 'COMPLETED' AND status = upper($14::text)::event_log_status AND", "e.last_error", "e.created_at", "true")
	selectCompletedSQL    = selectPageSQL(loggedColumns, "e.last_error", "e.created_at", "e.status::text = upper($14::text)")
)

// SelectLogged implements operate.ChangeStore.
func (s *Store) SelectLogged(ctx context.Context, filter operate.EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error) {
	state := filter.State
	if state == "" {
		state = operate.StateFailed
	}
	sql := selectUnsuccessfulSQL
	if state == operate.StateCompleted {
		sql = selectCompletedSQL
	}
	return s.selectPage(ctx, sql, filter, after, last, limit, string(state))
}

func (s *Store) selectPage(ctx context.Context, sql string, filter operate.EventFilter, after, last eventqueue.EventID, limit int, more ...any) (ids []eventqueue.EventID, next eventqueue.EventID, err error) {
	var canvas *[16]byte
	if filter.Canvas != nil {
		canvas = (*[16]byte)(filter.Canvas)
	}
	arguments := append([]any{int64(after), int64(last), limit, canvas, filter.Module, filter.Name, filter.Modifier,
		attributes.Encode(filter.Attributes), givenAge(filter.OlderThan), givenAge(filter.NewerThan), filter.Error, filter.ErrorGroup != "", operate.ErrorGroupReads}, more...)
	var failures []string
	err = s.walk(ctx, sql, arguments, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&ids, &failures, &next}, func() error { return nil })
		return err
	})
	if filter.ErrorGroup != "" && err == nil {
		ids = inErrorGroup(filter.ErrorGroup, ids, failures)
	}
	return ids, next, err
}

// inErrorGroup returns those of some events whose errors are in a group.
func inErrorGroup(group string, ids []eventqueue.EventID, failures []string) (of []eventqueue.EventID) {
	for i, id := range ids {
		if operate.ErrorGroup(failures[i]) == group {
			of = append(of, id)
		}
	}
	return of
}

func givenAge(age time.Duration) *time.Duration {
	if age == 0 {
		return nil
	}
	return &age
}
