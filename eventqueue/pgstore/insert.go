package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

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
		return s.insertUnique(ctx, in, events, announce)
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
	batch := &pgx.Batch{}
	for rest := events; len(rest) > 0; rest = rest[min(len(rest), insertChunk):] {
		batch.Queue(statement, arguments(rest[:min(len(rest), insertChunk)], announce)...)
	}
	results := db.SendBatch(ctx, batch)
	inserted := make([]eventqueue.Inserted, 0, len(events))
	for range batch.Len() {
		rows, err := results.Query()
		if err == nil {
			inserted, err = pgx.AppendRows(inserted, rows, scanInserted)
		}
		if err != nil {
			_ = results.Close() // the first error says what went wrong
			return nil, err
		}
	}
	return inserted, results.Close()
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

// arrayTypes are the types of the arrays among insertSQL's parameters.
var arrayTypes = []uint32{pgtype.UUIDArrayOID, pgtype.TextArrayOID, pgtype.TextArrayOID, pgtype.TextArrayOID,
	pgtype.TextArrayOID, pgtype.TimestamptzArrayOID, pgtype.Int8ArrayOID}

// InsertSQL implements eventqueue.EmitStore. Drivers of database/sql differ in
// the arrays they can send, but all send text, so arrays go as their literals.
func (s *Store) InsertSQL(ctx context.Context, in *sql.Tx, events []eventqueue.NewEvent, announce eventqueue.Announce) ([]eventqueue.Inserted, error) {
	if hasKeys(events) {
		return insertUniqueSQLTx(ctx, in, events, announce)
	}
	types := pgtype.NewMap()
	inserted := make([]eventqueue.Inserted, 0, len(events))
	for rest := events; len(rest) > 0; rest = rest[min(len(rest), insertChunk):] {
		args := insertArgs(rest[:min(len(rest), insertChunk)], announce)
		for i, oid := range arrayTypes {
			literal, err := types.Encode(oid, pgtype.TextFormatCode, args[i], nil)
			if err != nil {
				return nil, fmt.Errorf("encode parameter %d of the insert: %w", i+1, err)
			}
			args[i] = string(literal)
		}
		chunk, err := queryInserted(ctx, in, args)
		if err != nil {
			return nil, err
		}
		inserted = append(inserted, chunk...)
	}
	return inserted, nil
}

func queryInserted(ctx context.Context, in *sql.Tx, args []any) (inserted []eventqueue.Inserted, err error) {
	rows, err := in.QueryContext(ctx, insertSQL, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r eventqueue.Inserted
		var woken sql.NullBool
		if err := rows.Scan(&r.ID, &r.Announced, &woken); err != nil {
			return nil, err
		}
		inserted = append(inserted, r)
	}
	return inserted, rows.Err()
}
