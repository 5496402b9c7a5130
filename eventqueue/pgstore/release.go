package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/mayrun"
)

// A rule that is lifted at a rate holds back the events above released_to, and no others. released_at is up
// to when the rate has been used: from it on, but for no longer than that, there is room for more. One that is
// ahead of the clock, which has been set back or which SQL has written, counts as a second ago.
const releaseRoomSQL = `
SELECT id, released_to, from_at, floor(extract(epoch FROM clock_timestamp() - from_at)::numeric * rate)::integer, rate
FROM (SELECT *, CASE WHEN released_at > clock_timestamp() + $7::interval THEN clock_timestamp() - interval '1 s'
          ELSE greatest(released_at, clock_timestamp() - $7::interval) END AS from_at FROM scheduling_rules
      WHERE ` + ofRuleSQL + ` AND rate IS NOT NULL) AS rule`

// The rule releases all for the moment, so that the page has what no other rule holds back. No other transaction sees
// that: it is not committed. A time that the table would refuse is replaced, too.
const releaseAllSQL = `UPDATE scheduling_rules SET released_to = 9223372036854775807, released_at = clock_timestamp() WHERE id = $1`

// releasableSQL is the last of the first events that are due, and how many there are. It reads each
// handler in the order of its index.
var releasableSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), ` + waitingNamesSQL("$5::boolean") + `, page AS (
    SELECT due.id FROM clock CROSS JOIN (SELECT $3::text AS name WHERE NOT $5::boolean UNION ALL SELECT name FROM names WHERE $5::boolean AND starts_with(name, $3)) AS handlers
    CROSS JOIN LATERAL (
        SELECT e.id FROM events_v2 e
        WHERE e.canvas_id = $1 AND e.module = $2 AND e.name = handlers.name AND e.id > $6
          AND ($4 = '' OR e.modifier = $4) AND ` + mayrun.DueSQL("e.delay_until", "clock.now") + ` AND NOT ` + mayrun.RuledSQL("e") + `
        ORDER BY e.id LIMIT $7
    ) AS due
    ORDER BY due.id LIMIT $7
)
SELECT count(*), coalesce(max(id), 0) FROM page`

// waitingNamesSQL are the names of a module that have events, if a condition holds. It jumps along the index
// events_v2_handler from one to the next.
func waitingNamesSQL(condition string) string {
	return `names AS (
    SELECT (SELECT e.name FROM events_v2 e WHERE ` + condition + ` AND e.canvas_id = $1 AND e.module = $2
            ORDER BY e.canvas_id, e.module, e.name LIMIT 1) AS name
    UNION ALL
    SELECT (SELECT e.name FROM events_v2 e WHERE e.canvas_id = $1 AND e.module = $2 AND e.name > names.name
            ORDER BY e.canvas_id, e.module, e.name LIMIT 1)
    FROM names WHERE names.name IS NOT NULL
)`
}

const releaseSQL = `
UPDATE scheduling_rules SET released_to = $2, released_at = $3::timestamptz + ($4::bigint * 1000000 / rate) * interval '1 microsecond'
WHERE id = $1`

const endReleaseSQL = `DELETE FROM scheduling_rules WHERE id = $1`

// The rule is again as it was, for the audit log.
const holdAgainSQL = `UPDATE scheduling_rules SET released_to = $2, released_at = $3 WHERE id = $1`

// liftedBySQL is the actor who last lifted the rule at a rate, according to the audit log. Another rule of the same
// scope may have been there before, with another created_at.
const liftedBySQL = `
SELECT actor, source, via, coalesce(operation_id, '00000000-0000-0000-0000-000000000000') FROM audit_log
WHERE canvas_id = $1 AND action = $2 AND target = $3::text::jsonb AND after->0->>'rate' IS NOT NULL
  AND after->0->>'created_at' = (SELECT to_jsonb(created_at) #>> '{}' FROM scheduling_rules WHERE id = $4)
ORDER BY id DESC LIMIT 1`

// Release implements operate.RuleStore. Claims need not wait: they see what has been committed.
func (s *Store) Release(ctx context.Context, t operate.RuleType, scope operate.RuleScope) (released operate.Released, err error) {
	at, err := s.changeRules(ctx, func(tx pgsession.DB) (err error) {
		released, err = s.release(ctx, tx, t, scope)
		return err
	})
	if err != nil {
		return operate.Released{}, err
	}
	released.At = at
	return released, nil
}

func (s *Store) release(ctx context.Context, tx pgsession.DB, t operate.RuleType, scope operate.RuleScope) (released operate.Released, err error) {
	var (
		id, to     int64
		room, rate int
		from       time.Time
		held       bool
	)
	if err := tx.QueryRow(ctx, "SELECT "+mayrun.WholeQueueRuledSQL).Scan(&held); err != nil || held {
		released.GoesOn = held // when the queue is no longer held
		return released, err
	}
	err = tx.QueryRow(ctx, releaseRoomSQL, append(ruleArgs(t, scope), operate.MaxReleaseTime)...).Scan(&id, &to, &from, &room, &rate)
	if errors.Is(err, pgx.ErrNoRows) {
		return released, nil
	}
	released.After = eventqueue.EventID(max(to, 0))
	if released.UpTo = released.After; err != nil || room <= 0 {
		released.GoesOn = true
		return released, err
	}
	if _, err := tx.Exec(ctx, releaseAllSQL, id); err != nil {
		return released, err
	}
	var found int
	var last eventqueue.EventID
	if err := tx.QueryRow(ctx, releasableSQL, append(ruleScopeArgs(scope), to, room)...).Scan(&found, &last); err != nil {
		return released, err
	}
	if released.GoesOn = found == room; released.GoesOn {
		released.UpTo = last
		_, err := tx.Exec(ctx, releaseSQL, id, last, from, room)
		return released, err
	}
	released.Removed, released.UpTo = true, 0
	if s.by != nil {
		if _, err := tx.Exec(ctx, holdAgainSQL, id, to, from); err != nil {
			return released, err
		}
	}
	if err := s.endRelease(ctx, tx, id, ruleRow("un"+string(t), t, scope)); err != nil {
		return released, err
	}
	return released, tx.QueryRow(ctx, noneHoldsSQL, ruleScopeArgs(scope)...).Scan(&released.Last)
}

// endRelease removes the rule. With an actor, the audit log says so in the name of whoever has lifted it, or of the actor if the
// log does not have that.
func (s *Store) endRelease(ctx context.Context, tx pgsession.DB, id int64, row auditedRow) error {
	if s.by != nil {
		target, err := json.Marshal(row.target)
		if err != nil {
			return err
		}
		by := *s.by
		err = tx.QueryRow(ctx, liftedBySQL, [16]byte(row.canvas), row.action, string(target), id).Scan(&by.Name, &by.Source, &by.Via, (*[16]byte)(&by.Operation))
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read who has lifted the rule: %w", err)
		}
		s = s.As(by)
	}
	return s.changeIn(ctx, tx, row, func(tx pgsession.DB) error {
		_, err := tx.Exec(ctx, endReleaseSQL, id)
		return err
	})
}

var waitingScopesSQL = `
WITH RECURSIVE ` + waitingNamesSQL("true") + `
SELECT name FROM names WHERE starts_with(name, $3) ORDER BY name COLLATE "C"`

// allScopesSQL jumps from one handler to the next.
var allScopesSQL = `
WITH RECURSIVE scopes AS (
    SELECT '00000000-0000-0000-0000-000000000000'::uuid AS canvas_id, '' AS module, '' AS name, false AS found
    UNION ALL
    SELECT following.*, true FROM scopes CROSS JOIN LATERAL (` + nextScopeSQL + `) AS following
)
SELECT canvas_id, module, name FROM scopes WHERE found`

// WaitingScopes implements operate.RuleStore.
func (s *Store) WaitingScopes(ctx context.Context, scope operate.RuleScope) ([]eventqueue.Scope, error) {
	if scope.Whole() {
		var all []eventqueue.Scope
		err := s.jump(ctx, allScopesSQL, nil, func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (of eventqueue.Scope, err error) {
				err = row.Scan((*[16]byte)(&of.Canvas), &of.Module, &of.Name)
				return of, err
			})
			return err
		})
		return all, err
	}
	rows, err := s.pool.Query(ctx, waitingScopesSQL, [16]byte(scope.Canvas), scope.Module, scope.Name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (handler eventqueue.Scope, err error) {
		handler.Canvas, handler.Module = scope.Canvas, scope.Module
		err = row.Scan(&handler.Name)
		return handler, err
	})
}
