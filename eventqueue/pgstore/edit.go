package pgstore

import (
	"context"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/attributes"
	"eventsv2/internal/mayrun"
)

// editSQL decides after lockChanged has waited for the claims that are under way: a run that has
// begun goes on with the value that it has. An event that has a new time is no longer put off by a
// rate limit, and its notification is pending.
var editSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, ` + mayrun.ValidForSQL + ` AS valid_for
), free AS MATERIALIZED (
    SELECT id, canvas_id, module, name, locked_at,
        ` + otherContentSQL("events_v2", "$7", "$8") + ` AS outdated
    FROM events_v2
    WHERE id = ANY ($1::bigint[])
    ORDER BY id
    FOR UPDATE SKIP LOCKED
), edited AS (
    UPDATE events_v2 e
    ` + clearLockSQL + `
        value = coalesce($2, e.value),
        attributes = CASE WHEN $3::text IS NULL THEN e.attributes ELSE nullif($3, '')::jsonb END,
        delay_until = coalesce(clock.now + $4::interval, CASE WHEN $5::timestamptz IS NOT NULL THEN greatest($5, clock.now) END, e.delay_until),
        notified_at = CASE WHEN $4 IS NULL AND $5 IS NULL AND e.locked_at IS NULL THEN e.notified_at END,
        limited_attempt = CASE WHEN $4 IS NULL AND $5 IS NULL THEN e.limited_attempt ELSE 0 END
    FROM clock
    WHERE e.id = ANY (ARRAY(SELECT id FROM free WHERE NOT outdated)) AND ` + mayrun.UnlockedSQL("e.locked_at", "clock.now - clock.valid_for") + `
    RETURNING e.id, e.notified_at
), woken AS (
    SELECT events_v2_notify($6, '') WHERE EXISTS (SELECT FROM edited WHERE notified_at IS NULL)
)` + strings.Replace(changedSQL("edited", "woken"), `WHEN free.id IS NOT NULL`, `WHEN free.outdated THEN 'outdated'
        WHEN free.id IS NOT NULL`, 1)

// Edit implements operate.ChangeStore, in one round trip and one transaction, or around the rows that
// the database refuses to write (I15).
func (s *Store) Edit(ctx context.Context, edit operate.Edit, ids []eventqueue.EventID) ([]operate.Changed, error) {
	return changeAround(ids, func(ids []eventqueue.EventID) (results []operate.Changed, err error) {
		arguments := append([]any{int64s(ids)}, editArguments(edit)...)
		err = s.changeEvents(ctx, auditedChange("edit", ids, &results), []query{
			{forms: lockChanged, arguments: []any{int64s(ids)}, read: discard},
			{forms: forms{waits: editSQL, skips: editSQL}, arguments: append(append(arguments, s.channel(pendingChannel)), contentArguments(edit)...), read: collect(&results, scanChanged)},
		})
		return results, err
	})
}

// otherContentSQL holds if a row has another content than the one that an edit is of.
func otherContentSQL(row, value, held string) string {
	return value + `::text IS NOT NULL AND (` + row + `.value, coalesce(` + row + `.attributes, '{}')) IS DISTINCT FROM (` + value + `, coalesce(nullif(` + held + `, '')::jsonb, '{}'))`
}

// contentArguments are the value and the attributes that an edit is of; NULL: whatever an event has.
func contentArguments(edit operate.Edit) []any {
	if edit.Of == nil {
		return []any{nil, ""}
	}
	return []any{string(edit.Of.Value), attributes.Encode(edit.Of.Attributes)}
}

// editArguments are value, attributes, delay and time, each NULL where the edit leaves it.
func editArguments(edit operate.Edit) []any {
	arguments := make([]any, 4)
	if edit.Value != nil {
		arguments[0] = string(edit.Value)
	}
	if edit.Attributes != nil {
		arguments[1] = attributes.Encode(edit.Attributes)
	}
	if edit.Delay != nil {
		arguments[2] = time.Duration(roundUpMicroseconds(*edit.Delay)) * time.Microsecond // never early (I6)
	}
	if !edit.DelayUntil.IsZero() {
		arguments[3] = storableTime(edit.DelayUntil)
	}
	return arguments
}
