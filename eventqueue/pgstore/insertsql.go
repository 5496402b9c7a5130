package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"eventsv2/eventqueue"
)

// InsertSQL implements eventqueue.EmitStore.
func (s *Store) InsertSQL(ctx context.Context, in *sql.Tx, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	if !hasKeys(events) {
		return insertChunks(ctx, in, s.pool.SQL(insertSQL), s.insertArgs, events, mode)
	}
	keys := uniqueKeys(events)
	statement, arguments := insertOrderedSQL, s.insertOrderedArgs
	if len(keys) > 0 {
		statement, arguments = insertUniqueSQL, s.insertUniqueArgs
	}
	if len(keys) > 1 {
		lock, err := literals(lockKeysArgs(keys))
		if err != nil {
			return nil, err
		}
		if _, err := in.ExecContext(ctx, s.pool.SQL(lockKeysSQL), lock...); err != nil {
			return nil, err
		}
	}
	inserted, err := insertChunks(ctx, in, s.pool.SQL(statement), arguments, events, mode)
	if err != nil {
		return nil, err
	}
	return answered(events, inserted, len(keys) > 0)
}

func insertChunks(ctx context.Context, in *sql.Tx, statement string, arguments func([]eventqueue.NewEvent, eventqueue.NotifyMode) []any,
	events []eventqueue.NewEvent, mode eventqueue.NotifyMode,
) ([]eventqueue.Inserted, error) {
	inserted := make([]eventqueue.Inserted, 0, len(events))
	for chunk := range slices.Chunk(events, insertChunk) {
		args, err := literals(arguments(chunk, mode))
		if err != nil {
			return nil, err
		}
		if inserted, err = appendInserted(ctx, in, inserted, statement, args); err != nil {
			return nil, err
		}
	}
	return inserted, nil
}

// literals writes the arrays among args as text: drivers of database/sql differ in
// the arrays they can send, but all send text.
func literals(args []any) ([]any, error) {
	types := pgtype.NewMap()
	for i, arg := range args {
		var array uint32
		switch arg.(type) {
		case [][16]byte:
			array = pgtype.UUIDArrayOID
		case []string, []*string:
			array = pgtype.TextArrayOID
		case []*time.Time:
			array = pgtype.TimestamptzArrayOID
		case []int32:
			array = pgtype.Int4ArrayOID
		case []int64, []*int64:
			array = pgtype.Int8ArrayOID
		case []bool:
			array = pgtype.BoolArrayOID
		default:
			continue
		}
		literal, err := types.Encode(array, pgtype.TextFormatCode, arg, nil)
		if err != nil {
			return nil, fmt.Errorf("encode parameter %d of the insert: %w", i+1, err)
		}
		if args[i] = nil; literal != nil {
			args[i] = string(literal)
		}
	}
	return args, nil
}

func appendInserted(ctx context.Context, in *sql.Tx, inserted []eventqueue.Inserted, statement string, args []any) (_ []eventqueue.Inserted, err error) {
	rows, err := in.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var r eventqueue.Inserted
		var woken sql.NullBool
		columns := []any{&r.ID, &r.MustNotify, &woken, &r.Repeat} // the last is of insertUniqueSQL alone
		if err := rows.Scan(columns[:len(names)]...); err != nil {
			return nil, err
		}
		inserted = append(inserted, r)
	}
	return inserted, rows.Err()
}
