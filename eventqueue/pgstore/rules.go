package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/mayrun"
)

// On claim_barrier EXCLUSIVE conflicts with what a claim holds until it has committed
// (see claimSQL), and on scheduling_rules with other changes of rules, but not with
// plain reads, such as a backup's. While it waits, new claims wait behind it; lock_timeout bounds that.
const lockRulesAgainstClaimsSQL = `LOCK TABLE scheduling_rules, claim_barrier IN EXCLUSIVE MODE`

// A rule that is being lifted at a rate is replaced: as a whole it is a new one.
const addRuleSQL = `
INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, modifier, prefix, reason, actor, until)
VALUES ($1::text::scheduling_rule_type, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (canvas_id, event_space, handler_name, rule_type, modifier, prefix) DO UPDATE
SET reason = excluded.reason, actor = excluded.actor, until = excluded.until, created_at = DEFAULT,
    rate = NULL, released_to = NULL, released_at = NULL
WHERE scheduling_rules.rate IS NOT NULL`

// untilPassedSQL is asked after the wait for claims, which may be long.
const untilPassedSQL = `SELECT $1::timestamptz <= clock_timestamp()`

// AddRule implements operate.RuleStore.
func (s *Store) AddRule(ctx context.Context, rule operate.Rule) (added bool, err error) {
	var until *time.Time
	if !rule.Until.IsZero() {
		until = &rule.Until
	}
	err = s.changing(ctx, func(tx pgsession.DB) error {
		if _, err := tx.Exec(ctx, lockRulesAgainstClaimsSQL); err != nil {
			return fmt.Errorf("wait for the claims under way: %w", err)
		}
		if until != nil {
			var passed bool
			if err := tx.QueryRow(ctx, untilPassedSQL, until).Scan(&passed); err != nil {
				return err
			}
			if passed {
				return operate.ErrUntilPassed
			}
		}
		return s.changeIn(ctx, tx, ruleRow(string(rule.Type), rule.Type, rule.RuleScope), func(tx pgsession.DB) error {
			tag, err := tx.Exec(ctx, addRuleSQL, append(ruleArgs(rule.Type, rule.RuleScope), rule.Reason, rule.Actor, until)...)
			added = tag.RowsAffected() == 1
			if err == nil && until != nil {
				err = s.wakeLifters(ctx, tx)
			}
			return err
		})
	})
	return added && err == nil, err
}

// wakeLifters has whoever lifts rules look at them once more, since they rest until the end of the next one.
func (s *Store) wakeLifters(ctx context.Context, tx pgsession.DB) error {
	_, err := tx.Exec(ctx, wakeRelaySQL, s.channel(pendingChannel))
	return err
}

// One change of rules at a time, so that of two rules that are lifted at
// once, one is the last. Claims need not wait.
const lockRulesSQL = `LOCK TABLE scheduling_rules IN SHARE ROW EXCLUSIVE MODE`

// ofRuleSQL is the condition of one rule, by its ruleArgs.
const ofRuleSQL = `rule_type = $1::text::scheduling_rule_type AND canvas_id = $2 AND event_space = $3 AND handler_name = $4 AND modifier = $5 AND prefix = $6`

const ruleAsJSONSQL = `
SELECT (SELECT jsonb_agg(to_jsonb(r) - 'id' ORDER BY r.id)::text FROM scheduling_rules r WHERE ` + ofRuleSQL + `)`

// ruleRow is the row of a rule for the audit log.
func ruleRow(action string, t operate.RuleType, scope operate.RuleScope) auditedRow {
	return auditedRow{action: action, canvas: scope.Canvas, target: map[string]handlerTarget{"handler": {scope.Module, scope.Name, scope.Modifier, scope.Prefix}},
		read: ruleAsJSONSQL, args: ruleArgs(t, scope)}
}

func ruleArgs(t operate.RuleType, scope operate.RuleScope) []any {
	return append([]any{string(t)}, ruleScopeArgs(scope)...)
}

func ruleScopeArgs(s operate.RuleScope) []any {
	return []any{[16]byte(s.Canvas), s.Module, s.Name, s.Modifier, s.Prefix}
}

const liftRuleSQL = `
DELETE FROM scheduling_rules
WHERE ` + ofRuleSQL + ` AND (NOT $7::boolean OR until <= clock_timestamp())`

// slowlyLiftRuleSQL gives a rule a rate: what one second allows may be released at once. All ids are above
// the lowest number.
const slowlyLiftRuleSQL = `
UPDATE scheduling_rules
SET rate = $8, until = NULL, released_to = coalesce(released_to, -9223372036854775808),
    released_at = coalesce(released_at, clock_timestamp() - interval '1 s')
WHERE ` + ofRuleSQL + ` AND (NOT $7::boolean OR until <= clock_timestamp())`

// noneHoldsSQL: no rule holds back all of a scope.
const noneHoldsSQL = `
SELECT NOT ` + mayrun.WholeQueueRuledSQL + ` AND NOT EXISTS (
    SELECT FROM scheduling_rules r
    WHERE r.canvas_id = $1 AND r.event_space = $2 AND r.released_to IS NULL AND r.modifier IN ('', $4)
      AND CASE WHEN r.prefix THEN starts_with($3, r.handler_name) ELSE r.handler_name = $3 AND NOT $5::boolean END)`

// LiftRule implements operate.RuleStore. The time is read after the commit:
// an event that is notified later is claimed without the rule.
func (s *Store) LiftRule(ctx context.Context, lift operate.Lift) (lifted operate.Lifted, err error) {
	sql, args := liftRuleSQL, append(ruleArgs(lift.Type, lift.RuleScope), lift.Expired)
	if lift.Rate > 0 {
		sql, args = slowlyLiftRuleSQL, append(args, lift.Rate)
	}
	lifted.At, err = s.changeRules(ctx, func(tx pgsession.DB) error {
		err := s.changeIn(ctx, tx, ruleRow("un"+string(lift.Type), lift.Type, lift.RuleScope), func(tx pgsession.DB) error {
			tag, err := tx.Exec(ctx, sql, args...)
			lifted.Removed = tag.RowsAffected() == 1
			return err
		})
		if err == nil && lift.Rate > 0 {
			err = s.wakeLifters(ctx, tx)
		}
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, noneHoldsSQL, ruleScopeArgs(lift.RuleScope)...).Scan(&lifted.Last)
	})
	if err != nil {
		return operate.Lifted{}, err
	}
	return lifted, nil
}

// changeRules calls f in a transaction while no other one changes rules, and returns the time after
// its commit.
func (s *Store) changeRules(ctx context.Context, f func(tx pgsession.DB) error) (at time.Time, err error) {
	err = s.changing(ctx, func(tx pgsession.DB) error {
		if _, err := tx.Exec(ctx, lockRulesSQL); err != nil {
			return err
		}
		return f(tx)
	})
	if err == nil {
		err = s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&at)
	}
	return at, err
}

// Times that were written by SQL are cut to the years that Go can read and JSON has, so that no row
// keeps the others from being read.
const rulesToLiftSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
SELECT CASE WHEN until > now AND rate IS NULL THEN until - now ELSE interval '0' END, rule_type::text, canvas_id, event_space, handler_name, modifier, prefix, reason, actor,
    least(greatest(until, '0001-01-01 00:00Z'), '9999-12-31 00:00Z'), coalesce(rate, 0), coalesce(greatest(released_to, 0), 0),
    least(greatest(released_at, '0001-01-01 00:00Z'), '9999-12-31 00:00Z')
FROM clock, scheduling_rules WHERE until <= now + $1::interval OR rate IS NOT NULL ORDER BY id`

// RulesToLift implements operate.RuleStore.
func (s *Store) RulesToLift(ctx context.Context, within time.Duration) ([]operate.RuleToLift, error) {
	rows, err := s.pool.Query(ctx, rulesToLiftSQL, within)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r operate.RuleToLift, err error) {
		var until, released *time.Time
		err = row.Scan(&r.In, &r.Type, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.Modifier, &r.Prefix, &r.Reason, &r.Actor, &until,
			&r.Rate, &r.ReleasedTo, &released)
		if until != nil {
			r.Until = *until
		}
		if released != nil {
			r.ReleasedAt = *released
		}
		return r, err
	})
}

// Woken implements operate.RuleStore.
func (s *Store) Woken() <-chan struct{} { return s.woken }
