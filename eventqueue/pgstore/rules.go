package pgstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
)

// On claim_barrier EXCLUSIVE conflicts with what a claim holds until it has committed
// (see claimSQL), and on scheduling_rules with other changes of rules and with what
// claims of earlier versions hold there, but not with plain reads, such as a
// backup's. While it waits, new claims wait behind it; lock_timeout bounds that.
const lockRulesAgainstClaimsSQL = `LOCK TABLE scheduling_rules, claim_barrier IN EXCLUSIVE MODE`

const addRuleSQL = `
INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name)
VALUES ($1::text::scheduling_rule_type, $2, $3, $4)
ON CONFLICT DO NOTHING`

// AddRule implements control.RuleStore.
func (s *Store) AddRule(ctx context.Context, t control.RuleType, scope eventqueue.Scope) (added bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockRulesAgainstClaimsSQL); err != nil {
			return fmt.Errorf("wait for the claims under way: %w", err)
		}
		tag, err := tx.Exec(ctx, addRuleSQL, string(t), [16]byte(scope.Canvas), scope.Module, scope.Name)
		added = tag.RowsAffected() == 1
		return err
	})
	return added, err
}

// One change of rules at a time, so that of two rules that are lifted at
// once, one is the last. Claims need not wait.
const lockRulesSQL = `LOCK TABLE scheduling_rules IN SHARE ROW EXCLUSIVE MODE`

const liftRuleSQL = `
DELETE FROM scheduling_rules
WHERE rule_type = $1::text::scheduling_rule_type AND canvas_id = $2 AND event_space = $3 AND handler_name = $4`

const noRuleLeftSQL = `
SELECT NOT EXISTS (
    SELECT FROM scheduling_rules WHERE canvas_id = $1 AND event_space = $2 AND handler_name = $3)`

// LiftRule implements control.RuleStore. The time is read after the commit:
// an event that is notified later is claimed without the rule.
func (s *Store) LiftRule(ctx context.Context, t control.RuleType, scope eventqueue.Scope) (lifted control.Lifted, err error) {
	canvas := [16]byte(scope.Canvas)
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockRulesSQL); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, liftRuleSQL, string(t), canvas, scope.Module, scope.Name)
		if err != nil {
			return err
		}
		lifted.Removed = tag.RowsAffected() == 1
		return tx.QueryRow(ctx, noRuleLeftSQL, canvas, scope.Module, scope.Name).Scan(&lifted.Last)
	})
	if err != nil {
		return control.Lifted{}, err
	}
	err = s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&lifted.At)
	return lifted, err
}

// A locked event is notified as well: the lock may have been left by a worker that
// died, and no notification is sent when it expires.
const takeWaitingSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT id
    FROM events_v2
    WHERE canvas_id = $1 AND module = $2 AND name = $3 AND id > $4
    ORDER BY id
    LIMIT $5
), taken AS (
    UPDATE events_v2 e SET notified_at = clock.now
    FROM clock, (
        SELECT e.id
        FROM events_v2 e, clock
        WHERE e.id IN (SELECT id FROM page)
          AND e.group_state <> 1 -- an event that waits in a group is notified when the group advances to it
          AND e.delay_until <= clock.now + $7::interval
          AND (e.notified_at IS NULL OR e.notified_at < $6)
        ORDER BY e.id
        FOR UPDATE OF e SKIP LOCKED
    ) AS free
    WHERE e.id = free.id
    RETURNING e.id, e.canvas_id
)
SELECT progress.next, taken.id, taken.canvas_id
FROM (SELECT CASE WHEN count(*) = $5 THEN max(id) END AS next FROM page) AS progress LEFT JOIN taken ON true`

// takeFoundWaitingSQL takes those of the given events that still wait, and findWaitingSQL finds the
// events of a page.
var takeFoundWaitingSQL = strings.Replace(takeWaitingSQL, "AND id > $4", "AND id = ANY ($4::bigint[])", 1)

const findWaitingSQL = `
WITH page AS MATERIALIZED (
    SELECT id, canvas_id
    FROM events_v2
    WHERE canvas_id = $1 AND module = $2 AND name = $3 AND id > $4
    ORDER BY id
    LIMIT $5
)
SELECT (SELECT CASE WHEN count(*) = $5 THEN max(id) END FROM page), id, canvas_id FROM page`

// TakeWaiting implements control.RuleStore.
func (s *Store) TakeWaiting(ctx context.Context, scope eventqueue.Scope, since time.Time, after eventqueue.EventID, limit int) (waiting []eventqueue.Notification, next eventqueue.EventID, err error) {
	of := []any{[16]byte(scope.Canvas), scope.Module, scope.Name}
	waiting, err = takeAround(&s.refused,
		func() (taken []eventqueue.Notification, err error) {
			taken, next, err = s.takePage(ctx, takeWaitingSQL, append(of, after, limit, since, eventqueue.MaxRequeue)...)
			return taken, err
		},
		func() (found []eventqueue.Notification, err error) {
			found, next, err = s.takePage(ctx, findWaitingSQL, append(of, after, limit)...)
			return found, err
		},
		func(taken *[]eventqueue.Notification) func(ids []eventqueue.EventID) error {
			return func(ids []eventqueue.EventID) error {
				some, _, err := s.takePage(ctx, takeFoundWaitingSQL, append(of, int64s(ids), len(ids), since, eventqueue.MaxRequeue)...)
				if err == nil {
					*taken = append(*taken, some...)
				}
				return err
			}
		})
	return waiting, next, outcome(len(waiting), err)
}
