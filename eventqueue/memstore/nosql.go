package memstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNoSQL is the error of the SQL methods of a Tx.
var ErrNoSQL = errors.New("memstore: there is no SQL in memory: use OnCommit for what the transaction does besides")

// noSQL has the methods of a pgx.Tx that a Tx does not support.
type noSQL struct{}

// Begin returns ErrNoSQL: there are no savepoints.
func (noSQL) Begin(context.Context) (pgx.Tx, error) { return nil, ErrNoSQL }

// CopyFrom returns ErrNoSQL.
func (noSQL) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, ErrNoSQL
}

// SendBatch returns results that are ErrNoSQL.
func (noSQL) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults { return noResults{} }

// LargeObjects returns large objects that cannot be used.
func (noSQL) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Prepare returns ErrNoSQL.
func (noSQL) Prepare(context.Context, string, string) (*pgconn.StatementDescription, error) {
	return nil, ErrNoSQL
}

// Exec returns ErrNoSQL.
func (noSQL) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, ErrNoSQL
}

// Query returns ErrNoSQL.
func (noSQL) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, ErrNoSQL }

// QueryRow returns a row whose Scan is ErrNoSQL.
func (noSQL) QueryRow(context.Context, string, ...any) pgx.Row { return noRow{} }

// Conn returns nil: there is no connection.
func (noSQL) Conn() *pgx.Conn { return nil }

type noRow struct{}

func (noRow) Scan(...any) error { return ErrNoSQL }

type noResults struct{}

func (noResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, ErrNoSQL }
func (noResults) Query() (pgx.Rows, error)         { return nil, ErrNoSQL }
func (noResults) QueryRow() pgx.Row                { return noRow{} }
func (noResults) Close() error                     { return ErrNoSQL }
func (noResults) Tx() pgx.Tx                       { return nil }
