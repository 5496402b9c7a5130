package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// The claim answers for all ids at one moment of the database's clock, from one
// snapshot, and takes the locks that may be taken:
//
//   - barrier reads nothing. Its FOR KEY SHARE takes a table lock (ROW SHARE) on
//     scheduling_rules before the statement takes its snapshot. Adding a rule
//     takes a conflicting one, so a claim has either committed before the rule
//     is added, or sees it (I7).
//   - runnable are the row versions (ctid) that may run. OFFSET 0 has each row
//     looked up by its id (see also patience.go).
//   - claimed writes the lock and the token into these versions. A row that was
//     written since is looked at once more, or left (I4, I6). Taking over an
//     expired lock counts as a failed attempt (I9); the subselect reads, from the
//     snapshot, when that lock was taken.
//   - An event in a line has to have its turn there, and one that is in none must
//     need none (see turns.go).
//   - marks says whether the key holds beyond the end, whether a rate limit is to be
//     asked and whether an exact one is among them, and the line; that there are no
//     rate limits anywhere is found out once per statement.
//   - The rest of the answer are the facts of the rows that were not claimed, if
//     there are any.
const (
	claimSQL     = claimFactsSQL + `SELECT version FROM runnable WHERE ` + patientSQL + claimWriteSQL
	claimFreeSQL = claimFactsSQL + `
        SELECT e.ctid FROM events_v2 e WHERE e.ctid = ANY (ARRAY(SELECT version FROM runnable))
        FOR UPDATE SKIP LOCKED` + claimWriteSQL

	claimFactsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), barrier AS MATERIALIZED (
    SELECT 1 FROM scheduling_rules WHERE false FOR KEY SHARE
), runnable AS (
    SELECT e.version
    FROM unnest($1::bigint[]) AS asked (id) CROSS JOIN LATERAL (
        SELECT e.ctid AS version, e.canvas_id, e.module, e.name, e.modifier, e.line, e.locked_at
        FROM events_v2 e
        WHERE e.id = asked.id AND ` + dueAndFreeSQL + `
        OFFSET 0) AS e
    WHERE ` + knownSQL + `
      AND NOT ((SELECT EXISTS (SELECT FROM scheduling_rules)) AND EXISTS (
          SELECT FROM scheduling_rules r
          WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module AND r.handler_name = e.name))
      AND NOT (` + needsTurnSQL + `)
), claimed AS (
    UPDATE events_v2 e
    SET locked_at = (SELECT now FROM clock), attempts = e.attempts + 1, retries = e.retries + (e.locked_at IS NOT NULL)::int
    WHERE e.ctid = ANY (ARRAY(`
	claimWriteSQL = `))
      AND ` + dueAndFreeSQL + `
    RETURNING e.id, e.canvas_id, e.module, e.name, e.modifier, e.delay_until,
        CASE WHEN e.attempts > 1 THEN (SELECT before.locked_at FROM events_v2 before WHERE before.id = e.id) END AS locked_at,
        e.attempts, e.retries, e.enqueued_at, e.value, e.ctid AS place,
        (e.unique_seconds > 0)::int + 8 * e.line + CASE WHEN (SELECT EXISTS (SELECT FROM rate_limits)) THEN (
            SELECT coalesce(max(CASE l.mode WHEN 'exact' THEN 6 ELSE 2 END), 0) FROM rate_limits l
            WHERE l.canvas_id = e.canvas_id AND l.module IN ('', e.module) AND l.name IN ('', e.name)) ELSE 0 END AS marks
)
SELECT e.id, e.canvas_id, e.module, e.name, e.modifier, e.delay_until, e.locked_at,
    NULL AS rule, true AS known, (SELECT now FROM clock),
    e.attempts, e.retries, e.enqueued_at, e.value, e.place, e.marks
FROM claimed AS e
WHERE NOT EXISTS (SELECT FROM barrier)
UNION ALL
SELECT e.id, e.canvas_id, e.module, e.name, e.modifier, e.delay_until, e.locked_at,
    (SELECT max(r.rule_type)::text FROM scheduling_rules r
     WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module AND r.handler_name = e.name),
    ` + knownSQL + `, clock.now,
    NULL, NULL, NULL, NULL, NULL, 8 * CASE WHEN ` + needsTurnSQL + ` THEN 3 ELSE e.line END
FROM clock CROSS JOIN (
    SELECT id FROM unnest($1::bigint[]) AS asked (id) WHERE id NOT IN (SELECT id FROM claimed)
) AS rest CROSS JOIN LATERAL (
    SELECT * FROM events_v2 e WHERE e.id = rest.id OFFSET 0
) AS e
WHERE (SELECT count(*) FROM claimed) < cardinality($1::bigint[])`

	dueAndFreeSQL = `e.delay_until <= (SELECT now FROM clock)
          AND (e.locked_at IS NULL OR e.locked_at <= (SELECT now FROM clock) - $2::interval)
          AND e.line IN (0, 2)`

	// needsTurnSQL says that an event without a turn needs one, because of a limit of
	// running events. One that is taken over began before there was a limit.
	needsTurnSQL = `e.line = 0 AND e.locked_at IS NULL AND (SELECT EXISTS (SELECT FROM running_limits)) AND EXISTS (
          SELECT FROM running_limits l
          WHERE l.canvas_id = e.canvas_id AND l.line IN ('canvas', events_v2_line(2, e.module, e.name, '')))`

	knownSQL = `((e.module, e.name, e.modifier) IN (SELECT * FROM unnest($3::text[], $4::text[], $5::text[]))
        OR (e.canvas_id, e.module, e.name, e.modifier) IN
            (SELECT * FROM unnest($6::uuid[], $7::text[], $8::text[], $9::text[])))`
)

// Claim implements eventqueue.ClaimStore. All rows are read before it returns:
// only then has the claim committed.
func (s *Store) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.Known, lockTimeout time.Duration) (found []eventqueue.Found, err error) {
	err = s.patiently(ctx, []query{claim(&found, ids, known, lockTimeout)})
	return found, err
}

// ClaimIn is Claim within a transaction: the claims are committed with it. Tests
// hold one open with it.
func ClaimIn(ctx context.Context, db eventqueue.DB, ids []eventqueue.EventID, known eventqueue.Known, lockTimeout time.Duration) (found []eventqueue.Found, err error) {
	err = within(ctx, db, []query{claim(&found, ids, known, lockTimeout)})
	return found, err
}

// claim is the statement that sets found.
func claim(found *[]eventqueue.Found, ids []eventqueue.EventID, known eventqueue.Known, lockTimeout time.Duration) query {
	return query{
		forms:     forms{waits: claimSQL, skips: claimFreeSQL},
		arguments: append([]any{int64s(ids), lockTimeout}, knownArgs(known)...),
		keepsPlan: len(ids) <= fewEvents,
		read: func(rows pgx.Rows) error {
			*found = make([]eventqueue.Found, 0, len(ids))
			row := newFoundRow()
			_, err := pgx.ForEachRow(rows, row.columns(), func() error {
				*found = append(*found, row.found(lockTimeout))
				return nil
			})
			return err
		},
	}
}

func knownArgs(known eventqueue.Known) []any {
	modules, names, modifiers := handlerColumns(known.Everywhere)
	canvases := make([][16]byte, len(known.OnCanvas))
	keys := make([]eventqueue.HandlerKey, len(known.OnCanvas))
	for i, on := range known.OnCanvas {
		canvases[i], keys[i] = on.Canvas, on.Key
	}
	canvasModules, canvasNames, canvasModifiers := handlerColumns(keys)
	return []any{modules, names, modifiers, canvases, canvasModules, canvasNames, canvasModifiers}
}

func handlerColumns(keys []eventqueue.HandlerKey) (modules, names, modifiers []string) {
	modules, names, modifiers = make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		modules[i], names[i], modifiers[i] = key.Module, key.Name, key.Modifier
	}
	return modules, names, modifiers
}

// foundRow is one row of the answer. All rows are scanned into the same one.
type foundRow struct {
	id                     int64
	canvas                 [16]byte
	module, name, modifier pgtype.DriverBytes // valid until the next row
	delayUntil, now        time.Time
	lockedAt, enqueuedAt   pgtype.Timestamptz
	rule                   pgtype.Text
	known                  bool
	attempts, retries      pgtype.Int4
	value                  []byte
	place                  pgtype.TID
	marks                  int32 // 1 unique, 2 limited, 4 exactly, and eight times the line

	texts map[string]string // handlers' names, of which there are few
}

func newFoundRow() *foundRow { return &foundRow{texts: map[string]string{}} }

func (r *foundRow) columns() []any {
	return []any{&r.id, &r.canvas, &r.module, &r.name, &r.modifier, &r.delayUntil, &r.lockedAt,
		&r.rule, &r.known, &r.now, &r.attempts, &r.retries, &r.enqueuedAt, &r.value, &r.place, &r.marks}
}

func (r *foundRow) text(b []byte) string {
	text, ok := r.texts[string(b)]
	if !ok {
		text = string(b)
		r.texts[text] = text
	}
	return text
}

func (r *foundRow) found(lockTimeout time.Duration) (f eventqueue.Found) {
	e := &f.Event
	e.ID, e.Canvas, e.DelayUntil = eventqueue.EventID(r.id), r.canvas, r.delayUntil
	e.Module, e.Name, e.Modifier = r.text(r.module), r.text(r.name), r.text(r.modifier)
	f.Facts.Present = true
	f.Facts.Known = r.known
	f.Facts.Rule = ruleFact(r.rule)
	line := int16(r.marks >> 3)
	f.Facts.Waits = line == lineWaits || line == lineLater
	f.InLine = line == lineTurn
	f.Facts.Delay = r.delayUntil.Sub(r.now)
	if r.lockedAt.Valid {
		f.Facts.LockRemaining = r.lockedAt.Time.Add(lockTimeout).Sub(r.now)
		f.Facts.Lock = machine.LockStale
		if f.Facts.LockRemaining > 0 {
			f.Facts.Lock = machine.LockHeld
		}
	}
	if r.attempts.Valid {
		f.Facts.Claimed = true
		f.Attempt, f.Place, f.Unique, f.Limited = r.attempts.Int32, placeOf(r.place), r.marks&1 != 0, r.marks&2 != 0
		f.Exact = r.marks&4 != 0
		e.Retries, e.EnqueuedAt, e.Value = int(r.retries.Int32), r.enqueuedAt.Time, r.value
	}
	return f
}

func ruleFact(rule pgtype.Text) machine.Rule {
	switch {
	case !rule.Valid:
		return machine.NoRule
	case rule.String == string(eventqueue.BlockRule):
		return machine.BlockRule
	default:
		return machine.PauseRule
	}
}
