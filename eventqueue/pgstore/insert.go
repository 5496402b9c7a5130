package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
// notified_at set here, so that publishing costs no second write.
const insertSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), input AS (
    SELECT i.*, greatest(coalesce(i.until, clock.now + i.delay_us * interval '1 microsecond'), clock.now) AS due
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[])
        WITH ORDINALITY AS i (canvas_id, module, name, modifier, value, until, delay_us, place), clock
), inserted AS (
    INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at)
    SELECT canvas_id, module, name, modifier, value, due, clock.now,
        CASE WHEN $8::boolean AND due <= clock.now + $9::bigint * interval '1 microsecond' THEN clock.now END
    FROM input, clock
    ORDER BY place
    RETURNING id, notified_at IS NOT NULL AS announced
)
SELECT id, announced, (SELECT pg_notify('` + owedChannel + `', '') IS NULL WHERE $10::boolean) AS woken
FROM inserted
ORDER BY id`

// insertChunk is how many events one statement takes.
const insertChunk = 1000

// Insert implements eventqueue.EmitStore.
func (s *Store) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, announce eventqueue.Announce) ([]eventqueue.Inserted, error) {
	db := s.in(in)
	if len(events) <= insertChunk {
		rows, err := db.Query(ctx, insertSQL, insertArgs(events, announce)...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scanInserted)
	}
	// One round trip, and one transaction if there is none yet.
	batch := &pgx.Batch{}
	for rest := events; len(rest) > 0; rest = rest[min(len(rest), insertChunk):] {
		batch.Queue(insertSQL, insertArgs(rest[:min(len(rest), insertChunk)], announce)...)
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
