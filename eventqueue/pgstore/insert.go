package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// owedChannel is what a commit that owes notifications notifies and the relay
// listens to.
const owedChannel = "events_v2_owed"

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
RETURNING id, notified_at IS NOT NULL AS announced, (SELECT pg_notify('` + owedChannel + `', '') IS NULL WHERE $10::boolean) AS woken`

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
RETURNING id, notified_at IS NOT NULL AS announced, (SELECT pg_notify('` + owedChannel + `', '') IS NULL WHERE $8::boolean) AS woken`

// insertChunk is how many events one statement takes.
const insertChunk = 1000

// Insert implements eventqueue.EmitStore.
func (s *Store) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, announce eventqueue.Announce) ([]eventqueue.Inserted, error) {
	if hasKeys(events) {
		return s.insertKeyed(ctx, in, events, announce)
	}
	statement, arguments := insertSQL, insertArgs
	if !slices.ContainsFunc(events, isDelayed) {
		statement, arguments = insertNowSQL, insertNowArgs
	}
	db := s.in(in)
	if len(events) <= insertChunk {
		rows, err := db.Query(ctx, statement, arguments(events, announce)...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scanInserted)
	}
	// One round trip, and one transaction if there is none yet.
	inserted := make([]eventqueue.Inserted, 0, len(events))
	var queries []query
	for chunk := range slices.Chunk(events, insertChunk) {
		queries = append(queries, insertion(&inserted, statement, arguments(chunk, announce), scanInserted))
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
	err = row.Scan(&r.ID, &r.Announced, nil)
	return r, err
}

func insertArgs(events []eventqueue.NewEvent, announce eventqueue.Announce) []any {
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
		announce == eventqueue.AnnounceSelf, eventqueue.MaxRequeue.Microseconds(), announce == eventqueue.AnnounceRelay}
}

func isDelayed(e eventqueue.NewEvent) bool { return e.Delay != 0 || !e.DelayUntil.IsZero() }

func insertNowArgs(events []eventqueue.NewEvent, announce eventqueue.Announce) []any {
	values, places := make([]string, len(events)), make([]int32, len(events))
	var canvases [][16]byte
	var modules, names, modifiers []string
	seen := map[eventqueue.CanvasHandler]int32{}
	for i := range events {
		e := &events[i]
		at := eventqueue.CanvasHandler{Canvas: e.Canvas, Key: e.Handler()}
		place, known := seen[at]
		if !known {
			canvases, modules = append(canvases, e.Canvas), append(modules, e.Module)
			names, modifiers = append(names, e.Name), append(modifiers, e.Modifier)
			place = int32(len(canvases)) // arrays of Postgres begin at 1
			seen[at] = place
		}
		values[i], places[i] = string(e.Value), place
	}
	return []any{canvases, modules, names, modifiers, values, places,
		announce == eventqueue.AnnounceSelf, announce == eventqueue.AnnounceRelay}
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
