package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/internal/mayrun"
)

// before is read from the snapshot, so it is the limit as it was. The counters are the
// trigger's.
const setRateLimitSQL = `
WITH before AS MATERIALIZED (
    SELECT per_minute, per_day, mode FROM rate_limits WHERE canvas_id = $1 AND module = $2 AND name = $3
), upserted AS (
    INSERT INTO rate_limits AS l (canvas_id, module, name, per_minute, per_day, mode)
    VALUES ($1, $2, $3, nullif($4::integer, 0), nullif($5::integer, 0), $6)
    ON CONFLICT (canvas_id, module, name) DO UPDATE
    SET per_minute = excluded.per_minute, per_day = excluded.per_day, mode = excluded.mode
    WHERE (l.per_minute, l.per_day, l.mode) IS DISTINCT FROM (excluded.per_minute, excluded.per_day, excluded.mode)
)
SELECT coalesce(per_minute, 0), coalesce(per_day, 0), mode FROM before`

// SetRateLimit implements operate.RateStore.
func (s *Store) SetRateLimit(ctx context.Context, limit operate.RateLimit) (before *operate.RateLimit, err error) {
	if s.by == nil {
		err = s.share.wait(ctx, func() error {
			before, err = setRateLimit(ctx, s.pool, limit)
			return err
		})
		return before, err
	}
	err = s.change(ctx, rateLimitRow(limit.Scope), func(tx pgsession.DB) error {
		before, err = setRateLimit(ctx, tx, limit)
		return err
	})
	return before, err
}

// rateLimitRow is the row of a rate limit for the audit log.
func rateLimitRow(scope eventqueue.Scope) auditedRow {
	return auditedRow{action: "limit", canvas: scope.Canvas, target: map[string]handlerTarget{"rate_limit": {Module: scope.Module, Name: scope.Name}},
		read: rateLimitAsJSONSQL, args: []any{[16]byte(scope.Canvas), scope.Module, scope.Name}}
}

func setRateLimit(ctx context.Context, db eventqueue.DB, limit operate.RateLimit) (*operate.RateLimit, error) {
	rows, err := db.Query(ctx, setRateLimitSQL, [16]byte(limit.Canvas), limit.Module, limit.Name,
		limit.PerMinute, limit.PerDay, string(limit.Mode))
	if err != nil {
		return nil, err
	}
	before, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (operate.RateLimit, error) {
		l := operate.RateLimit{Scope: limit.Scope}
		return l, row.Scan(&l.PerMinute, &l.PerDay, &l.Mode)
	})
	if err != nil || len(before) == 0 {
		return nil, err
	}
	return &before[0], nil
}

const removeRateLimitSQL = `DELETE FROM rate_limits WHERE canvas_id = $1 AND module = $2 AND name = $3`

// RemoveRateLimit implements operate.RateStore.
func (s *Store) RemoveRateLimit(ctx context.Context, scope eventqueue.Scope) (removed bool, err error) {
	remove := func(tx pgsession.DB) error {
		tag, err := tx.Exec(ctx, removeRateLimitSQL, [16]byte(scope.Canvas), scope.Module, scope.Name)
		removed = tag.RowsAffected() == 1
		return err
	}
	if s.by == nil {
		err = s.share.wait(ctx, func() error { return remove(s.pool) })
		return removed, err
	}
	err = s.change(ctx, rateLimitRow(scope), remove)
	return removed, err
}

const (
	allRatesSQL = mayrun.RateLimitsSQL + `
WHERE $1::uuid IS NULL OR canvas_id = $1
ORDER BY canvas_id, module, name`
	checkRateSQL = mayrun.RateLimitsSQL + `
WHERE canvas_id = $1 AND module IN ('', $2) AND name IN ('', $3)`
)

// RateLimits implements operate.RateStore.
func (s *Store) RateLimits(ctx context.Context, canvas *eventqueue.CanvasID) ([]operate.RateStatus, error) {
	return s.rates(ctx, allRatesSQL, (*[16]byte)(canvas))
}

func (s *Store) rates(ctx context.Context, sql string, arguments ...any) ([]operate.RateStatus, error) {
	rows, err := s.pool.Query(ctx, sql, arguments...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r operate.RateStatus, err error) {
		err = row.Scan((*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.PerMinute, &r.PerDay, &r.Mode, &r.MinuteUsed, &r.DayUsed,
			&r.MinuteLeft, &r.DayLeft, &r.Waiting)
		return r, err
	})
}

// CheckRate implements operate.RateStore.
func (s *Store) CheckRate(ctx context.Context, scope eventqueue.Scope) (answer ratelimit.Answer, err error) {
	found, err := s.rates(ctx, checkRateSQL, [16]byte(scope.Canvas), scope.Module, scope.Name)
	for _, r := range found {
		state := &ratelimit.State{PerMinute: r.PerMinute, PerDay: r.PerDay, Mode: r.Mode, Windows: r.Windows}
		if r.WholeCanvas() {
			answer.Canvas = state
		} else {
			answer.Handler = state
		}
	}
	return answer, err
}

// limitedAttemptSQL is the value of limited_attempt while a limit delays the event.
const limitedAttemptSQL = mayrun.LimitedAttemptSQL

// putOffBeforeSQL is the same in the row of the claim that follows.
const putOffBeforeSQL = `((e.attempts - 1) % 32767 + 1)::smallint`

// page is bounded by the rows that are read, in the order of the index events_v2_handler.
//
// A claimed event may be about to be put off by the limit as it was. It gets a negative
// limited_attempt, which tells that write that the limit has changed (tooLateSQL). A
// locked row is waited for briefly: after that, the event has been put off, or gets the
// mark. Rows that stay locked for longer are skipped.
const (
	takeLimitedSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT module, name, id
    FROM events_v2
    WHERE canvas_id = $1 AND (canvas_id, module, name, id) > ($1, $2, $3, $4)`
	takeLimitedOfSQL = `
      AND (canvas_id, module, name) = ($1, $2, $3)`
	takeLimitedRestSQL = `
    ORDER BY canvas_id, module, name, id
    LIMIT $5
), held AS MATERIALIZED (
    SELECT e.id, e.locked_at IS NOT NULL AS claimed
    FROM events_v2 e, clock
    WHERE e.id IN (SELECT id FROM page)
      AND (e.locked_at IS NOT NULL OR e.limited_attempt = ` + limitedAttemptSQL + ` AND e.delay_until > clock.now)`
	takeLimitedWriteSQL = `
), marked AS (
    UPDATE events_v2 e SET limited_attempt = -` + limitedAttemptSQL + ` FROM held WHERE e.id = held.id AND held.claimed
), taken AS (
    UPDATE events_v2 e SET delay_until = clock.now, notified_at = clock.now
    FROM clock, held
    WHERE e.id = held.id AND NOT held.claimed
    RETURNING e.id, e.canvas_id
), last AS (
    SELECT module, name, id FROM page ORDER BY module DESC, name DESC, id DESC LIMIT 1
)
SELECT progress.module, progress.name, progress.id, taken.id, taken.canvas_id
FROM (SELECT last.* FROM (VALUES (1)) AS single_row LEFT JOIN last ON (SELECT count(*) = $5 FROM page)) AS progress LEFT JOIN taken ON true`
)

// TakeLimited implements operate.RateStore.
func (s *Store) TakeLimited(ctx context.Context, scope eventqueue.Scope, after operate.RatePlace, limit int) (due []eventqueue.Notification, next operate.RatePlace, err error) {
	sql := takeLimitedSQL + takeLimitedRestSQL
	if !scope.WholeCanvas() {
		sql = takeLimitedSQL + takeLimitedOfSQL + takeLimitedRestSQL
		after.Module, after.Name = scope.Module, scope.Name
	}
	due, next, err = s.takeLimited(ctx, sql+" AND "+lockWaitSQL+"\n    ORDER BY e.id FOR UPDATE OF e"+takeLimitedWriteSQL, scope, after, limit)
	if lockWaitExpired(err) {
		due, next, err = s.takeLimited(ctx, sql+"\n    ORDER BY e.id FOR UPDATE OF e SKIP LOCKED"+takeLimitedWriteSQL, scope, after, limit)
	}
	return due, next, err
}

func (s *Store) takeLimited(ctx context.Context, sql string, scope eventqueue.Scope, after operate.RatePlace, limit int) (due []eventqueue.Notification, next operate.RatePlace, err error) {
	var (
		module, name *string
		last, id     *eventqueue.EventID
		canvas       *[16]byte
	)
	arguments := []any{[16]byte(scope.Canvas), after.Module, after.Name, after.Event, limit}
	err = s.walk(ctx, sql, arguments, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&module, &name, &last, &id, &canvas}, func() error {
			if id != nil {
				due = append(due, eventqueue.Notification{Event: *id, Canvas: *canvas})
			}
			return nil
		})
		return err
	})
	if err != nil || last == nil {
		return due, operate.RatePlace{}, err
	}
	return due, operate.RatePlace{Module: *module, Name: *name, Event: *last}, nil
}
