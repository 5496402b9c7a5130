package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// pendingChannel is notified by a commit that leaves notifications pending. The relay
// listens to it.
const pendingChannel = "events_v2_pending"

// unpublishedChannel is notified as well by programs that could not publish. Workers
// listen to it and then find the events in the database. An emit by SQL wakes the relay
// only.
const unpublishedChannel = "events_v2_unpublished"

// lostPayload is the relay's payload on that channel when published notifications seem
// lost. Programs that could not publish send an empty payload.
const lostPayload = "lost"

// wokenBy names the channels that an insert notifies. It is never nil: drivers of
// database/sql get it as text.
func wokenBy(mode eventqueue.NotifyMode) []string {
	switch mode {
	case eventqueue.NotifyModeRelay:
		return []string{pendingChannel}
	case eventqueue.NotifyModeLater:
		return []string{pendingChannel, unpublishedChannel}
	default:
		return []string{}
	}
}

// wakeSQL notifies the channels of an array.
const wakeSQL = `SELECT bool_and(pg_notify(channel, '') IS NULL) FROM unnest(`

// A delay counts from the database's clock; a delay_until that has passed means
// now. An event whose notification goes out right after the commit has
// notified_at set here, so that publishing costs no second write. The
// rows come back as they were inserted: in the order of place, and of their ids.
const insertSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at)
SELECT canvas_id, module, name, modifier, value, due, (SELECT now FROM clock),
    CASE WHEN $8::boolean AND due <= (SELECT now FROM clock) + $9::bigint * interval '1 microsecond' THEN (SELECT now FROM clock) END
FROM (
    SELECT i.*, greatest(coalesce(i.until, (SELECT now FROM clock) + i.delay_us * interval '1 microsecond'), (SELECT now FROM clock)) AS due
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[])
        WITH ORDINALITY AS i (canvas_id, module, name, modifier, value, until, delay_us, place)) AS input
ORDER BY place
RETURNING id, notified_at IS NOT NULL AS notified, (` + wakeSQL + `$10::text[]) AS channel) AS woken`

// insertNowSQL is insertSQL for events without delays, which are most: at two thirds
// of its price. Canvases and handlers, of which there are few, come as a list of
// their own, and each event with its place there. A scan of a function returns its
// rows in order, so nothing has to be sorted.
const insertNowSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at)
SELECT ($1::uuid[])[handler], ($2::text[])[handler], ($3::text[])[handler], ($4::text[])[handler], value,
    (SELECT now FROM clock), (SELECT now FROM clock), (SELECT now FROM clock WHERE $7::boolean)
FROM unnest($5::text[], $6::int[]) AS i (value, handler)
RETURNING id, notified_at IS NOT NULL AS notified, (` + wakeSQL + `$8::text[]) AS channel) AS woken`

// insertChunk is how many events one statement takes.
const insertChunk = 1000

// Insert implements eventqueue.EmitStore.
func (s *Store) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	if hasKeys(events) {
		return s.insertKeyed(ctx, in, events, mode)
	}
	statement, arguments := insertSQL, insertArgs
	if !slices.ContainsFunc(events, isDelayed) {
		statement, arguments = insertNowSQL, insertNowArgs
	}
	if len(events) <= insertChunk {
		query := s.pool.QueryAtAnyLevel // it reads nothing
		if in != nil {
			query = in.Query
		}
		rows, err := query(ctx, statement, arguments(events, mode)...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scanInserted)
	}
	// One round trip, and one transaction if there is none yet.
	inserted := make([]eventqueue.Inserted, 0, len(events))
	var queries []query
	for chunk := range slices.Chunk(events, insertChunk) {
		queries = append(queries, insertion(&inserted, statement, arguments(chunk, mode), scanInserted))
	}
	var db batcher = s.pool
	if in != nil {
		db = in
	}
	if err := send(ctx, db, queries, skipping, nil, nil); err != nil {
		return nil, err
	}
	return inserted, nil
}

// insertion is the statement that adds to inserted what it has inserted.
func insertion(inserted *[]eventqueue.Inserted, statement string, arguments []any, scan pgx.RowToFunc[eventqueue.Inserted]) query {
	return query{
		forms:     forms{skips: statement},
		arguments: arguments,
		read: func(rows pgx.Rows) (err error) {
			*inserted, err = pgx.AppendRows(*inserted, rows, scan)
			return err
		},
	}
}

func scanInserted(row pgx.CollectableRow) (r eventqueue.Inserted, err error) {
	err = row.Scan(&r.ID, &r.MustNotify, nil)
	return r, err
}

func insertArgs(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) []any {
	n := len(events)
	canvases, values := make([][16]byte, n), make([]string, n)
	modules, names, modifiers := make([]string, n), make([]string, n), make([]string, n)
	untils, delays := make([]*time.Time, n), make([]int64, n)
	for i := range events {
		e := &events[i]
		canvases[i], values[i] = e.Canvas, string(e.Value)
		modules[i], names[i], modifiers[i] = e.Module, e.Name, e.Modifier
		delays[i] = roundUpMicroseconds(e.Delay)
		if !e.DelayUntil.IsZero() {
			untils[i] = new(storableTime(e.DelayUntil))
		}
	}
	return []any{canvases, modules, names, modifiers, values, untils, delays,
		mode == eventqueue.NotifyModeSelf, eventqueue.MaxRequeue.Microseconds(), wokenBy(mode)}
}

func isDelayed(e eventqueue.NewEvent) bool { return e.Delay != 0 || !e.DelayUntil.IsZero() }

func insertNowArgs(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) []any {
	values, places := make([]string, len(events)), make([]int32, len(events))
	var canvases [][16]byte
	var modules, names, modifiers []string
	seen := map[eventqueue.CanvasHandler]int32{}
	for i := range events {
		e := &events[i]
		at := eventqueue.CanvasHandler{Canvas: e.Canvas, Key: e.Handler()}
		place, seenBefore := seen[at]
		if !seenBefore {
			canvases, modules = append(canvases, e.Canvas), append(modules, e.Module)
			names, modifiers = append(names, e.Name), append(modifiers, e.Modifier)
			place = int32(len(canvases)) // arrays of Postgres begin at 1
			seen[at] = place
		}
		values[i], places[i] = string(e.Value), place
	}
	return []any{canvases, modules, names, modifiers, values, places,
		mode == eventqueue.NotifyModeSelf, wokenBy(mode)}
}

// roundUpMicroseconds keeps a delay from becoming shorter by the database's
// unit (I6).
func roundUpMicroseconds(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// storableTime does the same to a time. Years that no timestamptz can hold have
// passed, as all before 1970 have, and any of these means now.
func storableTime(t time.Time) time.Time {
	if epoch := time.Unix(0, 0); t.Before(epoch) {
		return epoch
	}
	return t.Add(time.Microsecond - 1).Truncate(time.Microsecond)
}
