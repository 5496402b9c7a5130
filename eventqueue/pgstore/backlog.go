package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/internal/mayrun"
)

// The bounds of one count of what is pending: how many handlers it visits, how many events it reads
// of all of them, and how many delayed ones of each. One handler has an equal share of the events.
const (
	pendingScopes  = 1000
	pendingEvents  = 50_000
	pendingDelayed = 20
)

// drainedWithin is how old the last row of a handler may be for the next count to write that it has no event any more.
const drainedWithin = 10 * time.Minute

// pendingColumnsSQL are what the statements below need of an event, and dueFreeSQL holds if such a row is due
// and not running.
const pendingColumnsSQL = `e.id, e.canvas_id, e.module, e.name, e.modifier, e.delay_until, e.locked_at, e.group_state`

var dueFreeSQL = mayrun.DueSQL("e.delay_until", "now") + ` AND ` + mayrun.UnlockedSQL("e.locked_at", "valid")

// ageSQL is for how long something has been due; NULL if nothing is.
func ageSQL(due string) string {
	return `CASE WHEN ` + due + ` IS NOT NULL THEN least(clock.now - greatest(` + due + `, '0001-01-01 00:00Z'), '36500 days') END`
}

// countPendingSQL jumps from scope to scope (see scopes.go) and reads no more than $2 events, and
// $3 delayed ones of each scope. Of a scope with more events than its share it estimates the number:
// the ids up to its newest event have as many of its events as those that were read: 100 events read among the ids 1 to 400,
// and 4000 the newest id, are estimated as 1000. The oldest due
// events are those with the lowest ids, except for those that were delayed, which have an index. An
// age is a hundred years at most, since Go's durations end at 292.
//
// Held are the events that rules hold back: all of a handler, or of some that have been read as large a
// part as of all. free_due is the age of the oldest due event that no rule holds back.
//
// unserved are scopes in which nothing runs and nothing has ended in recent minutes although an event
// has been due for a minute. Runs on canvases beyond the bound of a minute are counted with those of
// other canvases: then they may be of any of them.
//
// drained are scopes of the page without an event whose last row does not say so, or has counts of an earlier minute: 0 is
// written for each minute in which something was counted, and once when the last event has ended. So a queue in which nothing happens has no rows.
// Rows of others (minutes.go) have no count of what is pending.
var countPendingSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT now, date_trunc('minute', now, 'UTC') AS minute, now - ` + mayrun.ValidForSQL + ` AS valid
    FROM (SELECT clock_timestamp() AS now) AS clock
), scopes AS (
    SELECT $4::uuid AS canvas_id, $5::text AS module, $6::text AS name, 0 AS n
    UNION ALL
    SELECT following.*, scopes.n + 1
    FROM scopes CROSS JOIN LATERAL (` + nextScopeSQL + `) AS following
    WHERE scopes.n < $1
), share AS MATERIALIZED (
    SELECT $2::bigint / greatest(max(n), 1) AS events FROM scopes
), counted AS (
    SELECT scopes.canvas_id, scopes.module, scopes.name, oldest.n, oldest.low, oldest.high, oldest.running, oldest.held, newest.id AS newest,
        least(oldest.due, delayed.due) AS due, least(oldest.free_due, delayed.free_due) AS free_due, ` + mayrun.HandlerRuledSQL("scopes") + ` AS ruled
    FROM clock CROSS JOIN share CROSS JOIN scopes CROSS JOIN LATERAL (
        SELECT count(*) AS n, min(e.id) AS low, max(e.id) AS high,
            count(*) FILTER (WHERE NOT ` + mayrun.UnlockedSQL("e.locked_at", "valid") + `) AS running, count(*) FILTER (WHERE ` + mayrun.NarrowlyRuledSQL("e") + `) AS held,
            min(e.delay_until) FILTER (WHERE ` + dueFreeSQL + `) AS due,
            min(e.delay_until) FILTER (WHERE ` + dueFreeSQL + ` AND NOT ` + mayrun.NarrowlyRuledSQL("e") + `) AS free_due
        FROM (SELECT ` + pendingColumnsSQL + ` FROM events_v2 e
              WHERE ` + mayrun.OfHandlerSQL("scopes") + `
              ORDER BY e.canvas_id, e.module, e.name, e.id LIMIT share.events) AS e
    ) AS oldest CROSS JOIN LATERAL (
        SELECT e.id FROM events_v2 e
        WHERE ` + mayrun.OfHandlerSQL("scopes") + `
        ORDER BY e.canvas_id DESC, e.module DESC, e.name DESC, e.id DESC LIMIT 1
    ) AS newest CROSS JOIN LATERAL (
        SELECT min(e.delay_until) FILTER (WHERE ` + dueFreeSQL + `) AS due,
            min(e.delay_until) FILTER (WHERE ` + dueFreeSQL + ` AND NOT ` + mayrun.NarrowlyRuledSQL("e") + `) AS free_due
        FROM (SELECT ` + pendingColumnsSQL + ` FROM events_v2 e
              WHERE ` + mayrun.DelayedOfHandlerSQL("scopes", "now") + `
              ORDER BY e.canvas_id, e.module, e.name, e.delay_until LIMIT $3) AS e
    ) AS delayed
    WHERE scopes.n > 0
), estimated AS MATERIALIZED (
    SELECT c.canvas_id, c.module, c.name, c.running, c.ruled, all_of.pending,
        CASE WHEN c.ruled THEN all_of.pending ELSE round(all_of.pending::numeric * c.held / c.n)::bigint END AS held,
        ` + ageSQL("c.due") + ` AS oldest_due, ` + ageSQL("c.free_due") + ` AS free_due
    FROM clock CROSS JOIN share CROSS JOIN counted c CROSS JOIN LATERAL (
        SELECT CASE WHEN c.n < share.events THEN c.n ELSE greatest(c.n, round(c.n::numeric * (c.newest - c.low + 1) / (c.high - c.low + 1)))::bigint END AS pending
    ) AS all_of
    WHERE c.n > 0
), last_rows AS (
    SELECT DISTINCT ON (m.canvas_id, m.module, m.name) m.*
    FROM clock CROSS JOIN generate_series(clock.minute - $11::interval, clock.minute, '1 minute') AS asked (minute) CROSS JOIN LATERAL (
        SELECT m.minute, m.canvas_id, m.module, m.name, m.pending, m.emitted + m.completed + m.failed + m.retried + m.cancelled > 0 AS counted
        FROM event_minutes m WHERE m.minute = asked.minute AND (m.canvas_id, m.module, m.name) > ($4::uuid, $5::text, $6::text)
    ) AS m
    ORDER BY m.canvas_id, m.module, m.name, m.minute DESC
), drained AS (
    SELECT l.canvas_id, l.module, l.name
    FROM clock CROSS JOIN last_rows l LEFT JOIN scopes AS next ON next.n = $1
    WHERE (l.pending IS DISTINCT FROM 0 OR l.counted AND l.minute < clock.minute)
      AND (l.pending IS NOT NULL OR l.canvas_id <> '00000000-0000-0000-0000-000000000000')
      AND (next.n IS NULL OR (l.canvas_id, l.module, l.name) <= (next.canvas_id, next.module, next.name))
      AND (l.canvas_id, l.module, l.name) NOT IN (SELECT canvas_id, module, name FROM estimated)
    ORDER BY nullif(l.pending, 0) DESC NULLS LAST, l.canvas_id, l.module, l.name LIMIT $1
), written AS (
    INSERT INTO event_minutes AS e (minute, canvas_id, module, name, pending, oldest_due)
    SELECT clock.minute, c.*
    FROM clock CROSS JOIN (
        SELECT canvas_id, module, name, pending, oldest_due FROM estimated
        UNION ALL
        SELECT canvas_id, module, name, 0, NULL FROM drained
    ) AS c
    ORDER BY c.canvas_id, c.module, c.name
    ON CONFLICT (minute, canvas_id, module, name) DO UPDATE SET pending = excluded.pending, oldest_due = excluded.oldest_due
    RETURNING true
), recent AS MATERIALIZED (
    SELECT e.minute < clock.minute AS before, e.canvas_id, e.module, e.name, e.completed, e.failed, e.retried
    FROM clock JOIN event_minutes e ON e.minute >= clock.minute - interval '1 minute'
    WHERE e.completed + e.failed + e.retried > 0
), unserved AS (
    SELECT c.canvas_id, c.module, c.name, c.free_due AS oldest_due
    FROM estimated c
    WHERE NOT c.ruled AND c.running = 0 AND c.free_due >= $7::interval
      AND (c.canvas_id, c.module, c.name) NOT IN (SELECT canvas_id, module, name FROM recent)
      AND (c.module, c.name) NOT IN (SELECT module, name FROM recent WHERE canvas_id = '00000000-0000-0000-0000-000000000000')
      AND NOT EXISTS (SELECT FROM recent WHERE canvas_id = '00000000-0000-0000-0000-000000000000' AND module = '')
)
SELECT coalesce(next.canvas_id, '00000000-0000-0000-0000-000000000000'), coalesce(next.module, ''), coalesce(next.name, ''),
    (SELECT EXISTS (SELECT FROM event_minutes e WHERE e.minute >= ` + unsummedSQL("$10") + ` AND e.minute <= ` + lastCompleteSQL("$9") + `) FROM clock),
    EXISTS (SELECT FROM event_emits),
    before.completed, before.failed, before.retried, (SELECT count(*) FROM recent), waiting.running, waiting.pending, waiting.held, waiting.oldest_due,
    (SELECT count(*) FROM unserved), oldest.canvas_id, oldest.module, oldest.name, oldest.oldest_due
FROM (
    SELECT coalesce(sum(completed), 0)::bigint AS completed, coalesce(sum(failed), 0)::bigint AS failed, coalesce(sum(retried), 0)::bigint AS retried
    FROM recent WHERE before
) AS before CROSS JOIN (
    SELECT coalesce(sum(running), 0)::bigint AS running, coalesce(sum(pending), 0)::bigint AS pending,
        coalesce(sum(held), 0)::bigint AS held, coalesce(max(free_due) FILTER (WHERE NOT ruled), '0') AS oldest_due
    FROM estimated
) AS waiting
LEFT JOIN scopes AS next ON next.n = $1
LEFT JOIN LATERAL (SELECT * FROM unserved ORDER BY oldest_due DESC, canvas_id, module, name LIMIT $8) AS oldest ON true
WHERE (SELECT count(*) FROM written) >= 0`

// CountWaiting implements maintenance.MinuteStore.
func (s *Store) CountWaiting(ctx context.Context, after eventqueue.Scope) (w maintenance.Waiting, err error) {
	arguments := []any{pendingScopes, pendingEvents, pendingDelayed, [16]byte(after.Canvas), after.Module, after.Name,
		maintenance.UnservedAfter, maintenance.MaxUnserved, completeAfter, totalsSince, drainedWithin}
	err = s.jump(ctx, countPendingSQL, arguments, func(rows pgx.Rows) error {
		var canvas *[16]byte
		var module, name *string
		var due *time.Duration
		_, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&w.Next.Canvas), &w.Next.Module, &w.Next.Name, &w.Unsummed, &w.Uncounted,
			&w.Completed, &w.Failed, &w.Retried, &w.EndedOf, &w.Running, &w.Pending, &w.Held, &w.OldestDue, &w.UnservedHandlers, &canvas, &module, &name, &due}, func() error {
			if canvas != nil {
				w.Unserved = append(w.Unserved, maintenance.Unserved{Scope: eventqueue.Scope{Canvas: *canvas, Module: *module, Name: *name}, DueFor: *due})
			}
			return nil
		})
		return err
	})
	if err != nil {
		return maintenance.Waiting{}, fmt.Errorf("count what is pending: %w", err)
	}
	return w, nil
}

// oldestDueSQL reads what countPendingSQL reads of one scope. An event that waits for others of its
// ordering group is left out: those before it say why. So is one that a rule holds back which is not of all
// events of its handler.
var oldestDueSQL = `
WITH clock AS MATERIALIZED (
    SELECT now, now - ` + mayrun.ValidForSQL + ` AS valid FROM (SELECT clock_timestamp() AS now) AS clock
)
SELECT e.id, e.modifier
FROM clock CROSS JOIN (SELECT $1::uuid AS canvas_id, $2::text AS module, $3::text AS name) AS of CROSS JOIN LATERAL (
    (SELECT e.* FROM (SELECT ` + pendingColumnsSQL + ` FROM events_v2 e
         WHERE ` + mayrun.OfHandlerSQL("of") + `
         ORDER BY e.canvas_id, e.module, e.name, e.id LIMIT $4) AS e)
    UNION ALL
    (SELECT e.* FROM (SELECT ` + pendingColumnsSQL + ` FROM events_v2 e
         WHERE ` + mayrun.DelayedOfHandlerSQL("of", "now") + `
         ORDER BY e.canvas_id, e.module, e.name, e.delay_until LIMIT $5) AS e)
) AS e
WHERE ` + dueFreeSQL + ` AND ` + mayrun.NotBehindSQL("e.group_state") + ` AND NOT ` + mayrun.NarrowlyRuledSQL("e") + `
ORDER BY e.delay_until, e.id LIMIT 1`

// OldestDue implements maintenance.MinuteStore.
func (s *Store) OldestDue(ctx context.Context, scope eventqueue.Scope) (id eventqueue.EventID, modifier string, err error) {
	arguments := []any{[16]byte(scope.Canvas), scope.Module, scope.Name, pendingEvents, pendingDelayed}
	err = s.jump(ctx, oldestDueSQL, arguments, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &modifier}, func() error { return nil })
		return err
	})
	if err != nil {
		return 0, "", fmt.Errorf("find the oldest event that is due: %w", err)
	}
	return id, modifier, nil
}

// sumHourSQL makes the rows of the first hour that has rows in event_minutes, none in event_hours,
// and is over for so long that no hand-in of its last minute can be under way. Of two programs
// that do it at once, one writes nothing.
const sumHourSQL = `
WITH found AS MATERIALIZED (
    SELECT date_trunc('hour', e.minute, 'UTC') AS hour FROM event_minutes e
    WHERE e.minute >= coalesce((SELECT hour + interval '1 hour' FROM event_hours ORDER BY hour DESC LIMIT 1), '-infinity')
    ORDER BY e.minute LIMIT 1
), complete AS MATERIALIZED (
    SELECT hour FROM found WHERE hour + interval '1 hour' + $2::interval <= clock_timestamp()
), given AS MATERIALIZED (
    SELECT dense_rank() OVER (ORDER BY volume DESC, canvas_id, module, name) AS place, v.*, false AS there
    FROM (SELECT e.*, sum(e.emitted + e.completed + e.failed + e.retried + e.cancelled) OVER (PARTITION BY e.canvas_id, e.module, e.name) AS volume
          FROM complete CROSS JOIN LATERAL (
              SELECT * FROM event_minutes e WHERE e.minute >= complete.hour AND e.minute < complete.hour + interval '1 hour' OFFSET 0) AS e) AS v
), room AS MATERIALIZED (
    SELECT $1::bigint AS scopes, $1::bigint AS handlers
)` + mergeCountsSQL + `, written AS (
    INSERT INTO event_hours (hour, canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, runs, pending, oldest_due)
    SELECT complete.hour, ` + mergedColumnsSQL + `, m.pending, m.oldest_due
    FROM complete CROSS JOIN merged m LEFT JOIN histograms h USING (canvas_id, module, name)
    ORDER BY m.canvas_id, m.module, m.name
    ON CONFLICT DO NOTHING
    RETURNING true
)
SELECT EXISTS (SELECT FROM complete) AND (SELECT count(*) FROM written) >= 0`

// SumHour implements maintenance.MinuteStore.
func (s *Store) SumHour(ctx context.Context) (summed bool, err error) {
	var totalled bool
	err = s.pool.QueryRow(ctx, sumHourSQL, MinuteScopes, completeAfter).Scan(&summed)
	if err == nil {
		err = s.pool.QueryRow(ctx, sumHourTotalsSQL, hourTotalsFor).Scan(&totalled)
	}
	if err != nil {
		return false, fmt.Errorf("sum up an hour: %w", err)
	}
	return summed || totalled, nil
}

// pruneSQL deletes the oldest rows of a table, by the time in a column. It leaves those that another
// program deletes.
func pruneSQL(table, column string) string {
	return `
WITH old AS MATERIALIZED (
    SELECT e.ctid AS version FROM ` + table + ` e
    WHERE e.` + column + ` < clock_timestamp() - $1::interval ORDER BY e.` + column + ` LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM ` + table + ` e WHERE e.ctid = ANY (ARRAY(SELECT version FROM old)) RETURNING true
)
SELECT count(*) FROM gone`
}

// PruneMinutes implements maintenance.MinuteStore.
func (s *Store) PruneMinutes(ctx context.Context, minutesFor, hoursFor time.Duration, limit int) (deleted int, err error) {
	for _, prune := range []struct {
		table, column string
		olderThan     time.Duration
	}{
		{"event_minutes", "minute", minutesFor},
		{"event_minute_totals", "minute", min(minutesFor, totalsFor)},
		{"event_hours", "hour", hoursFor},
		{"event_hour_totals", "hour", min(hoursFor, hourTotalsFor)},
		{"webhook_minutes", "minute", minutesFor},
		{"webhook_sources", "served_at", hoursFor}, // which are few
	} {
		var some int
		if err := s.pool.QueryRow(ctx, pruneSQL(prune.table, prune.column), prune.olderThan, limit).Scan(&some); err != nil {
			return deleted, fmt.Errorf("prune the counts of minutes and hours: %w", err)
		}
		deleted += some
	}
	return deleted, nil
}
