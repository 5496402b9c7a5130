package pgstore

import (
	"context"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/internal/attributes"
	"eventsv2/internal/mayrun"
)

// editSQL decides after lockChanged has waited for the claims that are under way: a run that has
// begun goes on with the value that it has. An event that has a new time is no longer put off by a
// rate limit, and its notification is pending.
var editSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), free AS MATERIALIZED (
    SELECT id, canvas_id, module, name, locked_at,
        $8::text IS NOT NULL AND (value, coalesce(attributes, '{}')) IS DISTINCT FROM ($8, coalesce(nullif($9, '')::jsonb, '{}')) AS outdated
    FROM events_v2
    WHERE id = ANY ($1::bigint[])
    ORDER BY id
    FOR UPDATE SKIP LOCKED
), edited AS (
    UPDATE events_v2 e
    ` + clearLockSQL + `
        value = coalesce($3, e.value),
        attributes = CASE WHEN $4::text IS NULL THEN e.attributes ELSE nullif($4, '')::jsonb END,
        delay_until = coalesce(clock.now + $5::interval, CASE WHEN $6::timestamptz IS NOT NULL THEN greatest($6, clock.now) END, e.delay_until),
        notified_at = CASE WHEN $5 IS NULL AND $6 IS NULL AND e.locked_at IS NULL THEN e.notified_at END,
        limited_attempt = CASE WHEN $5 IS NULL AND $6 IS NULL THEN e.limited_attempt ELSE 0 END
    FROM clock
    WHERE e.id = ANY (ARRAY(SELECT id FROM free WHERE NOT outdated)) AND ` + mayrun.UnlockedSQL("e.locked_at", mayrun.ValidSinceSQL("clock.now", "$2")) + `
    RETURNING e.id, e.notified_at
), woken AS (
    SELECT pg_notify($7, '') WHERE EXISTS (SELECT FROM edited WHERE notified_at IS NULL)
)` + strings.Replace(changedSQL("edited", "woken"), `WHEN free.id IS NOT NULL`, `WHEN free.outdated THEN 'outdated'
        WHEN free.id IS NOT NULL`, 1)

// Edit implements control.ChangeStore, in one round trip and one transaction, or around the rows that
// the database refuses to write (I15).
func (s *Store) Edit(ctx context.Context, edit control.Edit, ids []eventqueue.EventID) ([]control.Changed, error) {
	settings, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	var value *string // NULL: whatever it has
	var held string
	if edit.Of != nil {
		value, held = new(string(edit.Of.Value)), attributes.Encode(edit.Of.Attributes)
	}
	return changeAround(ids, changedID, refusedChange, func(ids []eventqueue.EventID) (results []control.Changed, err error) {
		arguments := append([]any{int64s(ids), settings.LockTimeout}, editArguments(edit)...)
		err = s.changeEvents(ctx, auditedChange("edit", ids, &results), []query{
			{forms: lockChanged, arguments: []any{int64s(ids)}, read: discard},
			{forms: forms{waits: editSQL, skips: editSQL}, arguments: append(arguments, s.channel(pendingChannel), value, held), read: collect(&results, scanChanged)},
		})
		return results, err
	})
}

// editArguments are value, attributes, delay and time, each NULL where the edit leaves it.
func editArguments(edit control.Edit) []any {
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
