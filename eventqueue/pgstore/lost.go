package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/internal/mayrun"
	"eventsv2/internal/refusal"
)

// The bounds of one part of a round: how many handlers or ordering groups it visits, how
// many events at either end of each, how many in all of the handlers where some of these
// are lost, how many events of handlers it takes, and how many events whose locks have
// been renewed it reads.
const (
	roundScopes = 1024
	roundGroups = 256
	roundEvents = 50
	roundDeeper = 4000
	roundTakes  = 5000
	roundRuns   = 2000
)

// takeRoundSQL goes by scopes. One with a rule costs no more than the jump. It reads the
// ends of each, and those of the events that were put off and are due now: between the
// former there may be any number that are not due. Scopes with such events are few, and
// the index events_v2_delayed has nothing else, so the statement jumps along that as well,
// as far as it has come. Where one of these events is lost, as when a worker has died, it
// reads more of the scope at once. Of what is lost it takes so much, of each canvas as much
// as of the others: the rest is found by the next round, and by the walk.
var takeRoundSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), scopes AS (
    SELECT $5::uuid AS canvas_id, $6::text AS module, $7::text AS name, 0 AS n
    UNION ALL
    SELECT following.*, scopes.n + 1
    FROM scopes CROSS JOIN LATERAL (` + nextScopeSQL + `) AS following
    WHERE scopes.n < $1
), progress AS MATERIALIZED (
    SELECT canvas_id, module, name FROM scopes WHERE n = $1
), delayed AS (
    SELECT $5::uuid AS canvas_id, $6::text AS module, $7::text AS name, NULL::timestamptz AS earliest
    UNION ALL
    SELECT following.*
    FROM delayed AS scopes CROSS JOIN LATERAL (
        SELECT e.canvas_id, e.module, e.name, e.delay_until FROM events_v2 e
        WHERE ` + mayrun.DelayedSQL + ` AND (e.canvas_id, e.module, e.name) > (scopes.canvas_id, scopes.module, scopes.name)
        ORDER BY e.canvas_id, e.module, e.name, e.delay_until LIMIT 1
    ) AS following
    WHERE NOT EXISTS (SELECT FROM progress p
                      WHERE (following.canvas_id, following.module, following.name) > (p.canvas_id, p.module, p.name))
), ends AS MATERIALIZED (
    SELECT scopes.canvas_id, scopes.module, scopes.name, e.id
    FROM clock CROSS JOIN scopes CROSS JOIN LATERAL (` + scopeEndsSQL(pageColumnsSQL, "$2") + `
    ) AS e
    WHERE scopes.n > 0 AND NOT ` + mayrun.HandlerRuledSQL("scopes") + ` AND NOT ` + mayrun.NarrowlyRuledSQL("e") + ` AND ` + liveSQL + ` AND ` + lostSQL + `
    UNION ALL
    SELECT scopes.canvas_id, scopes.module, scopes.name, e.id
    FROM clock CROSS JOIN delayed AS scopes CROSS JOIN LATERAL (
        (SELECT ` + pageColumnsSQL + ` FROM events_v2 e
         WHERE ` + mayrun.DelayedOfHandlerSQL("scopes", "now") + `
         ORDER BY e.canvas_id, e.module, e.name, e.delay_until LIMIT $2)
        UNION ALL
        (SELECT ` + pageColumnsSQL + ` FROM events_v2 e
         WHERE ` + mayrun.DelayedOfHandlerSQL("scopes", "now") + `
         ORDER BY e.canvas_id DESC, e.module DESC, e.name DESC, e.delay_until DESC LIMIT $2)
    ) AS e
    WHERE scopes.earliest <= now AND NOT ` + mayrun.HandlerRuledSQL("scopes") + ` AND NOT ` + mayrun.NarrowlyRuledSQL("e") + ` AND ` + liveSQL + ` AND ` + lostSQL + `
), page AS MATERIALIZED (
    SELECT e.* FROM (SELECT DISTINCT canvas_id, module, name FROM ends) AS scopes
    CROSS JOIN (SELECT $8::bigint / (2 * greatest(count(DISTINCT (canvas_id, module, name)), 1)) AS share FROM ends) AS half
    CROSS JOIN LATERAL (` + scopeEndsSQL(pageColumnsSQL, "greatest(half.share, 1)") + `
    ) AS e
    WHERE half.share > $2
    UNION
    SELECT ` + pageColumnsSQL + ` FROM ends CROSS JOIN LATERAL (SELECT * FROM events_v2 e WHERE e.id = ends.id OFFSET 0) AS e
), ` + takeLostOfSQL(" ORDER BY row_number() OVER (PARTITION BY canvas_id ORDER BY id), id LIMIT $9") + `
SELECT progress.canvas_id, progress.module, progress.name, taken.id, taken.canvas_id
FROM (VALUES (1)) AS single_row
LEFT JOIN progress ON true
LEFT JOIN taken ON true`

// takeRoundOfGroupsSQL jumps along the index event_groups_order from one ordering group to
// the next. However many events wait there, it reads those that may run, and the first
// that waits if the group has room: the group did not advance, or the notification of
// that event was lost (see repairSQL).
var takeRoundOfGroupsSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), visited AS (
    SELECT $5::uuid AS canvas_id, $6::text COLLATE "C" AS group_key, 0 AS stage, 0 AS n
    UNION ALL
    SELECT following.canvas_id, following.group_key, following.stage::integer, visited.n + 1
    FROM visited CROSS JOIN LATERAL (
        SELECT g.canvas_id, g.group_key, g.stage FROM event_groups g
        WHERE (g.canvas_id, g.group_key) > (visited.canvas_id, visited.group_key)
        ORDER BY g.canvas_id, g.group_key LIMIT 1
    ) AS following
    WHERE visited.n < $1
), groups AS MATERIALIZED (
    SELECT * FROM visited WHERE n > 0
), members AS MATERIALIZED (
    SELECT g.event_id
    FROM groups CROSS JOIN LATERAL (
        (SELECT g.event_id FROM event_groups g
         WHERE g.canvas_id = groups.canvas_id AND g.group_key = groups.group_key AND g.admitted ORDER BY g.event_id LIMIT $2)
        UNION
        (SELECT g.event_id FROM event_groups g
         WHERE g.canvas_id = groups.canvas_id AND g.group_key = groups.group_key AND g.admitted ORDER BY g.event_id DESC LIMIT $2)
    ) AS g
), page AS MATERIALIZED (
    SELECT e.* FROM (SELECT DISTINCT event_id FROM members) AS g
    CROSS JOIN LATERAL (SELECT ` + pageColumnsSQL + ` FROM events_v2 e WHERE e.id = g.event_id OFFSET 0) AS e
), ` + takeLostSQL + `, ` + idleSQL + `
), stalled AS MATERIALIZED (
    SELECT first.event_id AS id
    FROM clock CROSS JOIN groups
    CROSS JOIN LATERAL (` + firstWaitingSQL + `) AS first
    LEFT JOIN LATERAL (SELECT ` + pageColumnsSQL + ` FROM events_v2 e WHERE e.id = first.event_id OFFSET 0) AS e ON true
    WHERE (e.id IS NULL OR e.notified_at IS NOT NULL AND ` + mayrun.DueSQL("e.due", "now") + ` AND ` + silentSQL + `) AND ` + roomSQL + `
), found AS (
    SELECT id, canvas_id FROM taken
    UNION ALL
    SELECT event_id, NULL FROM members WHERE event_id NOT IN (SELECT id FROM page)
    UNION ALL
    SELECT id, NULL FROM idle
    UNION ALL
    SELECT id, NULL FROM stalled
)
SELECT progress.canvas_id, progress.group_key, found.id, found.canvas_id
FROM (VALUES (1)) AS single_row
LEFT JOIN (SELECT canvas_id, group_key FROM visited WHERE n = $1) AS progress ON true
LEFT JOIN found ON true`

// takeRoundOfRunsSQL reads the events whose locks have been renewed. They are few beside
// those that wait, and have an index of their own (events_v2_begun): so the runs of a
// worker that has died are found whatever the table's size.
var takeRoundOfRunsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT ` + pageColumnsSQL + ` FROM events_v2 e WHERE e.begun AND e.id > $1 ORDER BY e.id LIMIT $2
), ` + takeLostSQL + `
SELECT progress.next, taken.id, taken.canvas_id
FROM (SELECT CASE WHEN count(*) = $2 THEN max(id) END AS next FROM page) AS progress LEFT JOIN taken ON true`

// TakeRound implements maintenance.RelayStore.
func (s *Store) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	switch after.Stage {
	case maintenance.RoundOfHandlers:
		return s.takeRoundOfHandlers(ctx, after, lostAfter)
	case maintenance.RoundOfGroups:
		return s.takeRoundOfGroups(ctx, after, lostAfter)
	default:
		return s.takeRoundOfRuns(ctx, after, lostAfter)
	}
}

func (s *Store) takeRoundOfRuns(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	var last eventqueue.EventID
	lost, err = s.takeLost(ctx, takeRoundOfRunsSQL, lostAfter, func(sql string) (lost []eventqueue.Notification, err error) {
		sql, arguments := s.lostQuery(sql, after.Run, roundRuns, lostAfter, s.lostFactor())
		lost, last, err = s.takePage(ctx, sql, arguments...)
		return lost, err
	})
	if err = outcome(len(lost), err); last != 0 && (err == nil || refusal.Is(err)) {
		next = maintenance.RoundPlace{Stage: maintenance.RoundOfRuns, Run: last}
	}
	return lost, next, err
}

func (s *Store) takeRoundOfHandlers(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	lost, err = s.takeLost(ctx, takeRoundSQL, lostAfter, func(sql string) (lost []eventqueue.Notification, err error) {
		lost, next, err = s.goRoundOfHandlers(ctx, sql, after, lostAfter)
		return lost, err
	})
	return lost, next, outcome(len(lost), err)
}

// goRoundOfHandlers runs takeRoundSQL, or another form of it.
func (s *Store) goRoundOfHandlers(ctx context.Context, sql string, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	next.Stage = maintenance.RoundOfGroups
	of := after.Scope
	sql, arguments := s.lostQuery(sql, roundScopes, roundEvents, lostAfter, s.lostFactor(), [16]byte(of.Canvas), of.Module, of.Name, roundDeeper, roundTakes)
	err = s.jump(ctx, sql, arguments, func(rows pgx.Rows) error {
		var (
			of, canvas   *[16]byte
			module, name *string
			id           *eventqueue.EventID
		)
		_, err := pgx.ForEachRow(rows, []any{&of, &module, &name, &id, &canvas}, func() error {
			if of != nil {
				next = maintenance.RoundPlace{Scope: eventqueue.Scope{Canvas: *of, Module: *module, Name: *name}}
			}
			if id != nil {
				lost = append(lost, eventqueue.Notification{Event: *id, Canvas: *canvas})
			}
			return nil
		})
		return err
	})
	return lost, next, err
}

func (s *Store) takeRoundOfGroups(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	var stuck []eventqueue.EventID
	lost, err = s.takeLost(ctx, takeRoundOfGroupsSQL, lostAfter, func(sql string) (lost []eventqueue.Notification, err error) {
		lost, stuck, next, err = s.goRoundOfGroups(ctx, sql, after, lostAfter)
		return lost, err
	})
	if err = outcome(len(lost), err); err != nil && !refusal.Is(err) {
		return nil, maintenance.RoundPlace{}, err
	}
	repaired, repairErr := s.repair(ctx, stuck)
	lost = append(lost, repaired...)
	return lost, next, outcome(len(lost), err, repairErr)
}

// goRoundOfGroups runs takeRoundOfGroupsSQL, or another form of it. It returns the groups that are
// stuck, each by an event.
func (s *Store) goRoundOfGroups(ctx context.Context, sql string, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, stuck []eventqueue.EventID, next maintenance.RoundPlace, err error) {
	next.Stage = maintenance.RoundOfRuns
	sql, arguments := s.lostQuery(sql, roundGroups, roundEvents, lostAfter, s.lostFactor(), [16]byte(after.Scope.Canvas), after.Group)
	err = s.jump(ctx, sql, arguments, func(rows pgx.Rows) error {
		var (
			of, canvas *[16]byte
			group      *string
			id         *eventqueue.EventID
		)
		_, err := pgx.ForEachRow(rows, []any{&of, &group, &id, &canvas}, func() error {
			if of != nil {
				next = maintenance.RoundPlace{Stage: maintenance.RoundOfGroups, Scope: eventqueue.Scope{Canvas: *of}, Group: *group}
			}
			switch {
			case id == nil:
			case canvas == nil:
				stuck = append(stuck, *id)
			default:
				lost = append(lost, eventqueue.Notification{Event: *id, Canvas: *canvas})
			}
			return nil
		})
		return err
	})
	return lost, stuck, next, err
}
