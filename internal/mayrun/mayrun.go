// Package mayrun has the conditions that decide whether an event may run, as texts of SQL.
//
// Whether an event may run is decided by these conditions, and every statement that
// asks puts its own together from them: no rule holds its handler back, it is due,
// nobody has its lock, and it does not wait for others of its ordering group. The claim
// decides; what the others find is tried by a claim. TestStatementsAgreeOnWhatMayRun
// compares them all.
//
// What a statement has in its columns, and where it has the clock from, differs, and so
// does its plan: so these are texts with the names filled in.
package mayrun

// RuledSQL holds if there is a rule for the handler in the columns of a row.
func RuledSQL(row string) string {
	return `EXISTS (
          SELECT FROM scheduling_rules r
          WHERE r.canvas_id = ` + row + `.canvas_id AND r.event_space = ` + row + `.module AND r.handler_name = ` + row + `.name)`
}

// DueSQL holds if the event is due.
func DueSQL(delayUntil, now string) string { return delayUntil + ` <= ` + now }

// UnlockedSQL holds if nobody has the event's lock, or if that was renewed before valid last.
func UnlockedSQL(lockedAt, valid string) string {
	return `(` + lockedAt + ` IS NULL OR ` + lockedAt + ` <= ` + valid + `)`
}

// ValidSinceSQL is the moment since which a lock has to have been renewed to be valid.
// The lock timeout is a parameter of the statement.
func ValidSinceSQL(now, lockTimeout string) string { return now + ` - ` + ValidForSQL(lockTimeout) }

// ValidForSQL is how long a lock is valid without being renewed.
func ValidForSQL(lockTimeout string) string {
	return `greatest(` + lockTimeout + `::interval, ` + ValidSQL + `)`
}

// ValidSQL is for how long locks are valid by the settings of the database; without
// them it is NULL. A statement that checks locks takes the longer of this and its
// parameter: so no program can take over what another one holds (I4).
const ValidSQL = `(SELECT greatest(s.lock_timeout, s.lock_timeout_before) FROM events_v2_settings s)`

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
