// Package mayrun has the conditions that decide whether an event may run, as texts of SQL.
//
// Whether an event may run is decided by these conditions, and every statement that
// asks puts its own together from them: no rule holds its handler back, it is due,
// its lock is free, and it does not wait for others of its ordering group. The claim
// decides; what the others find is tried by a claim. TestStatementsAgreeOnRunnableEvents
// compares them all.
//
// What a statement has in its columns, and where it has the clock from, differs, and so
// does its plan: so these are texts with the names filled in.
package mayrun

import (
	"fmt"
	"strings"
	"time"

	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/operate"
)

// RuledSQL holds if a rule holds back the event in the columns of a row.
func RuledSQL(row string) string {
	return `(EXISTS (SELECT FROM ` + ofNameSQL(row) + ` AND ` + ofEventSQL(row) + `)
          OR ` + AnyNarrowSQL + ` AND (` + WholeQueueRuledSQL + ` OR EXISTS (SELECT FROM ` + ofPrefixSQL(row) + ` AND ` + ofEventSQL(row) + `)))`
}

// HandlerRuledSQL holds if a rule holds back all events of the handler in the columns of a row.
// NarrowlyRuledSQL says what else is held back of it.
func HandlerRuledSQL(row string) string {
	return `(EXISTS (SELECT FROM ` + ofNameSQL(row) + ` AND ` + wholeSQL + `)
          OR ` + AnyNarrowSQL + ` AND (` + WholeQueueRuledSQL + ` OR EXISTS (SELECT FROM ` + ofPrefixSQL(row) + ` AND ` + wholeSQL + `)))`
}

// NarrowlyRuledSQL holds if a rule holds back the event in the columns of a row. It may say no
// where HandlerRuledSQL holds, and costs nothing while all rules are of whole handlers.
func NarrowlyRuledSQL(row string) string {
	return `(` + AnyNarrowSQL + ` AND ` + RuledSQL(row) + `)`
}

// RuleSQL is the strongest rule that holds back the event in the columns of a row, as a text; NULL if there
// is none.
func RuleSQL(row string) string {
	return `greatest((SELECT max(r.rule_type) FROM ` + ofNameSQL(row) + ` AND ` + ofEventSQL(row) + `),
        CASE WHEN ` + AnyNarrowSQL + ` THEN greatest((SELECT max(r.rule_type) FROM ` + ofPrefixSQL(row) + ` AND ` + ofEventSQL(row) + `),
            (SELECT max(r.rule_type) FROM scheduling_rules r WHERE ` + OfWholeQueueSQL + `)) END)::text`
}

// Rules are found by their handlers in the index scheduling_rules_once; those of prefixes, of which
// there are few, in that of the narrow ones, and only where there is one at all.
func ofNameSQL(row string) string {
	return `scheduling_rules r
          WHERE r.canvas_id = ` + row + `.canvas_id AND r.event_space = ` + row + `.module AND r.handler_name = ` + row + `.name`
}

func ofPrefixSQL(row string) string {
	return `scheduling_rules r
          WHERE ` + NarrowSQL + ` AND r.prefix AND r.canvas_id = ` + row + `.canvas_id AND r.event_space = ` + row + `.module
            AND starts_with(` + row + `.name, r.handler_name)`
}

// ofEventSQL: of the handler's events, the rule r holds back the one in the columns of a row.
func ofEventSQL(row string) string {
	return `r.modifier IN ('', ` + row + `.modifier) AND (r.released_to IS NULL OR ` + row + `.id > r.released_to)`
}

const (
	// wholeSQL: the rule r holds back all events of its handlers.
	wholeSQL = `r.modifier = '' AND r.released_to IS NULL`

	// NarrowSQL holds if the rule r is not simply of one handler. It is the condition of the index
	// scheduling_rules_narrow.
	NarrowSQL = `(r.prefix OR r.modifier <> '' OR r.released_to IS NOT NULL)`

	// OfWholeQueueSQL holds if the rule r holds back every event of the queue (operate.WholeQueue). No event has that canvas.
	OfWholeQueueSQL = `(` + NarrowSQL + ` AND r.canvas_id = '00000000-0000-0000-0000-000000000000' AND r.event_space = '' AND r.prefix AND r.handler_name = '')`

	// WholeQueueRuledSQL is read once per statement.
	WholeQueueRuledSQL = `(SELECT EXISTS (SELECT FROM scheduling_rules r WHERE ` + OfWholeQueueSQL + `))`

	// AnyNarrowSQL is read once per statement.
	AnyNarrowSQL = `(SELECT EXISTS (SELECT FROM scheduling_rules r WHERE ` + NarrowSQL + `))`
)

// DueSQL holds if the event is due.
func DueSQL(delayUntil, now string) string { return delayUntil + ` <= ` + now }

// DelayedSQL holds if an event e was put off, and has been notified since. It is the condition of the index events_v2_delayed.
const DelayedSQL = `e.delay_until > e.enqueued_at AND e.notified_at IS NOT NULL`

// OfHandlerSQL holds if an event e belongs to a handler, whose canvas, module and name are columns of the row of. It is meant for scans
// of the index events_v2_handler in either direction. The name is a range, since with three equalities an index of ids alone would
// have the order, too. A row comparison would not do: Postgres ends a scan by its first column only, and would read all
// remaining entries of the canvas.
func OfHandlerSQL(of string) string {
	return strings.ReplaceAll(`e.canvas_id = of.canvas_id AND e.module = of.module AND e.name >= of.name AND e.name <= of.name`, "of.", of+".")
}

// DelayedOfHandlerSQL holds if an event e was put off, belongs to a handler, and was due by a time. It is meant for scans of the
// index events_v2_delayed.
func DelayedOfHandlerSQL(of, by string) string {
	return DelayedSQL + strings.ReplaceAll(` AND e.canvas_id = of.canvas_id AND e.module = of.module AND e.name = of.name AND e.delay_until <= `, "of.", of+".") + by
}

// UnlockedSQL holds if the event's lock is free, or was last renewed before valid.
func UnlockedSQL(lockedAt, valid string) string {
	return `(` + lockedAt + ` IS NULL OR ` + lockedAt + ` <= ` + valid + `)`
}

// ValidSinceSQL is the moment since which a lock has to have been renewed to be valid.
func ValidSinceSQL(now string) string { return now + ` - ` + ValidForSQL }

// ValidForSQL is how long a lock is valid without being renewed: the longer one of the lock timeouts that
// the database has, or the default if none is set. No statement goes by the lock timeout of
// its program: so no program can take over what another one holds (I4).
var ValidForSQL = fmt.Sprintf(`coalesce((SELECT greatest(s.lock_timeout, s.lock_timeout_before) FROM events_v2_settings s), interval '%d seconds')`,
	locktimeout.Default/time.Second)

// NotBehindSQL holds if the event does not wait for others of its ordering group. An event that has yet
// to join its group is tried, so that it joins.
func NotBehindSQL(group string) string { return group + ` <> 1` }

// GroupMayRunSQL holds if the event is in no ordering group, or its group has advanced to it.
func GroupMayRunSQL(group string) string { return group + ` IN (0, 2)` }

// NeedsGroupSQL holds if the event is in no ordering group and has to be in one, because of a
// concurrency limit. An event that is taken over began before there was a limit.
const NeedsGroupSQL = `e.group_state = 0 AND e.locked_at IS NULL AND (SELECT EXISTS (SELECT FROM concurrency_limits)) AND EXISTS (
          SELECT FROM concurrency_limits l
          WHERE l.canvas_id = e.canvas_id AND l.group_key IN ('canvas', events_v2_group_key(2, e.module, e.name, '')))`

// LimitedAttemptSQL is the value of limited_attempt of an event e while a rate limit delays it: it
// names the claim, so that it holds no longer when there is another.
const LimitedAttemptSQL = `(e.attempts % 32767 + 1)::smallint`

// heldStatesSQL are the states of events that a rule holds back.
var heldStatesSQL = func() (cases string) {
	for _, kind := range operate.RuleKinds() {
		cases += fmt.Sprintf(" WHEN '%s' THEN '%s'", kind.Type, kind.State)
	}
	return cases
}()

// StateSQL is the state of an event e (operate.EventState). rule is the stronger of its handler's
// rules, or NULL; validFor is ValidForSQL.
func StateSQL(rule, now, validFor string) string {
	return `
    CASE
        WHEN NOT ` + UnlockedSQL("e.locked_at", now+" - "+validFor) + ` THEN 'running'
        WHEN ` + rule + ` IS NOT NULL THEN CASE ` + rule + heldStatesSQL + ` ELSE ` + rule + ` END
        WHEN NOT ` + DueSQL("e.delay_until", now) + ` THEN 'delayed'
        WHEN e.locked_at IS NOT NULL THEN 'expired'
        WHEN NOT ` + NotBehindSQL("e.group_state") + ` THEN 'behind'
        ELSE 'waiting'
    END`
}
