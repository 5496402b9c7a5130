package pgsession

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// During a failover the name of a database may lead to a server that only reads. A connection made
// then stays there, and a pool keeps it for an hour. So a connection that says that it only reads
// is closed, whoever owns its pool, and the next use connects to where the name leads by then.

// onlyReads reports whether the server has told this connection that it only reads; it costs
// nothing. Servers before version 14, and some poolers, tell nothing.
func onlyReads(conn *pgx.Conn) bool {
	pg := conn.PgConn()
	return pg.ParameterStatus("default_transaction_read_only") == "on" || pg.ParameterStatus("in_hot_standby") == "on"
}

// ledAstray reports whether an error means that the connection leads to a server that only reads.
func ledAstray(err error) bool {
	const readOnly, unsupported = "25006", "0A000"
	if errors.Is(err, errReadOnly) {
		return true
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	// Many other refusals have the same code; only the text distinguishes them.
	return pg.Code == readOnly || pg.Code == unsupported && (strings.Contains(pg.Message, "recovery") || strings.Contains(pg.Message, "standby"))
}

// closeConnTakes bounds how long the end of one connection is waited for.
const closeConnTakes = time.Second

// discard closes a connection if the error means that it leads astray. Its pool takes no closed
// connection back, and what began its transaction can only roll back.
func discard(conn *pgx.Conn, err error) {
	if ledAstray(err) {
		closeConn(conn)
	}
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeConnTakes)
	defer cancel()
	_ = conn.Close(ctx) // it is of no use
}

// watch returns db, of whose connection nothing is left after an answer that it leads astray.
func watch(db DB) DB {
	switch of := db.(type) {
	case *Pool, inSchema: // they do that themselves
		return db
	case *pgxpool.Pool: // it does not say which of its connections has answered
		return watched{db, func(err error) {
			if ledAstray(err) {
				of.Reset()
			}
		}}
	case *pgx.Conn:
		return watched{db, func(err error) { discard(of, err) }}
	case interface{ Conn() *pgx.Conn }: // a transaction, or a connection of a pool
		return watched{db, func(err error) {
			if ledAstray(err) { // one that has ended has no connection
				discard(of.Conn(), err)
			}
		}}
	default:
		return db
	}
}

// watched shows each error of db to see.
type watched struct {
	DB
	see func(err error)
}

func (w watched) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := w.DB.Exec(ctx, sql, args...)
	w.see(err)
	return tag, err
}

func (w watched) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := w.DB.Query(ctx, sql, args...)
	if err != nil {
		w.see(err)
		return rows, err
	}
	return &rowsOf{Rows: rows, end: func(err error) error { w.see(err); return nil }}, nil
}

func (w watched) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := w.Query(ctx, sql, args...)
	return &rowOf{rows: rows, err: err}
}

func (w watched) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	return watchedResults{w.DB.SendBatch(ctx, batch), w.see}
}

func (w watched) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	n, err := w.DB.CopyFrom(ctx, table, columns, rows)
	w.see(err)
	return n, err
}

// watchedResults shows the error at its end, which is that of its first statement that failed.
type watchedResults struct {
	pgx.BatchResults
	see func(err error)
}

func (r watchedResults) Close() error {
	err := r.BatchResults.Close()
	r.see(err)
	return err
}
