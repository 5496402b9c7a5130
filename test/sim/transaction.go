package sim

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
)

// gated is a transaction whose statements pass the gate, each by itself.
type gated struct {
	*transaction
	port *port
}

func (tx *gated) inner() *transaction { return tx.transaction }

func (s *port) begin(ctx context.Context) (tx *gated, err error) {
	err = s.do(ctx, "Begin", "", func() (string, error) {
		begun, err := s.p.w.tables.begin(ctx, s.p.name)
		if err == nil {
			tx = &gated{begun, s}
		}
		return "", err
	})
	if err != nil && tx != nil {
		s.end(ctx, tx) // nobody knows of it
	}
	return tx, err
}

func (s *port) commit(ctx context.Context, tx *gated) error {
	var emitted []eventqueue.Inserted
	err := s.do(ctx, "Commit", "", func() (string, error) {
		err := tx.Commit(ctx)
		s.p.w.tables.ended(tx.transaction)
		if err == nil {
			for _, write := range tx.writes {
				write()
			}
			emitted = tx.emits
		}
		return "", err
	})
	if err != nil {
		s.p.w.unanswered(s.p, emitted)
	}
	return err
}

// end gives a transaction up, unless it has been committed.
func (s *port) end(ctx context.Context, tx *gated) {
	_ = tx.Rollback(context.WithoutCancel(ctx)) // after a commit it does nothing
	s.p.w.tables.ended(tx.transaction)
	s.p.w.poke() // others may wait for its keys
}

// Exec implements eventqueue.DB.
func (tx *gated) Exec(ctx context.Context, sql string, arguments ...any) (tag pgconn.CommandTag, err error) {
	err = tx.port.do(ctx, "Exec in a transaction", "", func() (string, error) {
		tag, err = tx.Tx.Exec(ctx, sql, arguments...)
		return "", err
	})
	return tag, err
}

// SendBatch implements eventqueue.DB.
func (tx *gated) SendBatch(ctx context.Context, batch *pgx.Batch) (results pgx.BatchResults) {
	err := tx.port.do(ctx, "SendBatch in a transaction", "", func() (string, error) {
		results = tx.Tx.SendBatch(ctx, batch)
		return "", nil
	})
	if err == nil {
		return results
	}
	if results != nil {
		_ = results.Close()
	}
	return failedBatch{err}
}

// No part of the queue calls these in a transaction: they would pass without the gate.

func (*gated) Query(context.Context, string, ...any) (pgx.Rows, error) { panic("not simulated") }
func (*gated) QueryRow(context.Context, string, ...any) pgx.Row        { panic("not simulated") }
func (*gated) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	panic("not simulated")
}

// direct is the database as a process sees it for statements that are no operations of a store, each in a transaction of its own.
type direct struct {
	port    *port
	op, key string           // key "": the first arguments of the statement
	record  func(p *process) // what a statement has done
}

func (db direct) do(ctx context.Context, args []any, f func() error) error {
	key := cmp.Or(db.key, fmt.Sprint(args[:min(len(args), 3)]))
	return db.port.do(ctx, db.op, key, func() (string, error) {
		err := f()
		db.record(db.port.p)
		return "", err
	})
}

// Exec implements eventqueue.DB.
func (db direct) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = db.do(ctx, args, func() error {
		tag, err = db.port.p.w.tables.pool.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// Query implements eventqueue.DB.
func (db direct) Query(ctx context.Context, sql string, args ...any) (rows pgx.Rows, err error) {
	err = db.do(ctx, args, func() error {
		rows, err = db.port.p.w.tables.pool.Query(ctx, sql, args...) //nolint:sqlclosecheck // the caller closes them
		return err
	})
	if err != nil && rows != nil {
		rows.Close()
	}
	return rows, err
}

// QueryRow implements eventqueue.DB.
func (db direct) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return directRow(func(into ...any) error {
		return db.do(ctx, args, func() error { return db.port.p.w.tables.pool.QueryRow(ctx, sql, args...).Scan(into...) })
	})
}

// directRow is a row whose statement happens when it is scanned.
type directRow func(into ...any) error

// Scan implements pgx.Row.
func (r directRow) Scan(into ...any) error { return r(into...) }

// SendBatch, CopyFrom and Ping are called by no part of the queue outside of its store.

func (direct) Ping(context.Context) error                             { panic("not simulated") }
func (direct) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults { panic("not simulated") }
func (direct) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	panic("not simulated")
}

// failedBatch is the answer to a batch of which nothing is known.
type failedBatch struct{ err error }

func (b failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }
func (b failedBatch) Query() (pgx.Rows, error)         { return nil, b.err }
func (b failedBatch) QueryRow() pgx.Row                { return failedRow(b) }
func (b failedBatch) Close() error                     { return b.err }
func (failedBatch) Tx() pgx.Tx                         { return nil }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }
