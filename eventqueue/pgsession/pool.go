package pgsession

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool runs each transaction at READ COMMITTED, also on a pool whose database, role
// or connections have another default. At that level the statements of the queue see
// rows that were committed while they waited. A Pool is safe for concurrent use.
//
// A connection prepared by Prepare is used as it is. On any other, a statement that
// sets the level precedes each statement, in the same round trip and transaction.
//
// Statements name what is the queue's without a schema; they are sent with it (see [Schema.SQL]).
type Pool struct {
	// Shared is the underlying pool, for statements that mean the same at any
	// isolation level and name nothing of the queue.
	Shared *pgxpool.Pool

	// Schema is the schema of the queue.
	Schema Schema

	// NoJIT has what Query, QueryRow, Exec and SendBatch send run without JIT compilation, also on a connection that
	// Prepare has not prepared: for statements that Postgres takes for large, since it does not know that they
	// read little of an index. To compile them takes longer than to run them.
	NoJIT bool

	checked   atomic.Bool // whether the pool's connection to the database has passed the checks
	qualified sync.Map    // of statements, as they are written: of which there are few
}

// On makes a Pool on a pool, which the caller closes, for the queue in a schema.
func On(pool *pgxpool.Pool, schema Schema) *Pool { return &Pool{Shared: pool, Schema: schema} }

// SQL returns a statement for the pool's schema, and caches it.
func (p *Pool) SQL(statement string) string {
	if sql, ok := p.qualified.Load(statement); ok {
		return sql.(string)
	}
	sql := p.Schema.SQL(statement)
	p.qualified.Store(statement, sql)
	return sql
}

// In returns a transaction, or another connection to the queue's database, for statements of the queue.
// nil stays nil.
func (p *Pool) In(db DB) DB {
	if db == nil {
		return nil
	}
	return inSchema{watch(db), p.SQL}
}

// LevelSQL sets the isolation level for the transaction of the statements that are
// sent together; it has to be the first of them. It is not a SET TRANSACTION, since
// that causes a warning outside a transaction block, which the server logs.
const LevelSQL = `SET transaction_isolation = 'read committed'`

// noJITSQL sets it for the transaction of the statements that are sent together.
const noJITSQL = `SELECT set_config('jit', 'off', true)`

// WalkSQL is for statements that read one page along an index. The statistics of a
// queue are outdated as soon as they are made; with them the planner would read and
// sort all remaining rows for each page.
const WalkSQL = `
SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`

// Acquire returns a connection of the pool, and whether Prepare has prepared it. On
// the first use of a pool it checks, as Check does, that the queue can work over it.
func (p *Pool) Acquire(ctx context.Context) (conn *pgxpool.Conn, ready bool, err error) {
	conn, err = p.acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	if prepared(conn.Conn()) {
		return conn, true, nil
	}
	if err := p.fit(ctx, conn.Conn()); err != nil {
		discard(conn.Conn(), err)
		conn.Release()
		return nil, false, err
	}
	return conn, false, nil
}

// acquire returns a connection that the server has not closed, as far as this side knows, and that
// does not lead to a server that only reads, as after a failover. A pool
// asks only those that have rested for a second; a restart of Postgres would cost each of the
// others an error, after which it is unknown whether something was committed.
func (p *Pool) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	for left := int32(-1); ; left-- {
		conn, err := p.Shared.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		gone, astray := closedByPeer(conn.Conn().PgConn().Conn()), onlyReads(conn.Conn())
		if !gone && !astray {
			return conn, nil
		}
		if left < 0 {
			left = p.Shared.Stat().IdleConns() + 1
		}
		if left == 0 {
			return conn, nil // a new one, too: its use says what the server says
		}
		closeConn(conn.Conn())
		conn.Release()
	}
}

// Check returns an error, with advice, if the queue cannot work over the pool:
// because of transaction pooling ([ErrTransactionPooling]), a read-only database, or
// an encoding other than UTF-8. It connects; beyond that it costs one round trip on a
// direct connection.
func (p *Pool) Check(ctx context.Context) error {
	conn, ready, err := p.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if ready {
		return CheckPooling(ctx, conn.Conn().PgConn(), &conn.Conn().Config().Config)
	}
	return nil
}

// fit checks a connection of the caller's, and, once per pool, for a pooler.
func (p *Pool) fit(ctx context.Context, conn *pgx.Conn) error {
	pg := conn.PgConn()
	if encoding := pg.ParameterStatus("client_encoding"); encoding != "UTF8" {
		return fmt.Errorf("the connection has the encoding %s, and the queue needs UTF8: set client_encoding=UTF8 on the pool", encoding)
	}
	if onlyReads(conn) {
		return errReadOnly
	}
	if p.checked.Load() {
		return nil
	}
	config := conn.Config()
	if err := CheckPooling(ctx, pg, &config.Config); err != nil {
		return err
	}
	if err := CheckMode(config.DefaultQueryExecMode); err != nil {
		return err
	}
	p.checked.Store(true)
	return nil
}

// CheckMode refuses the execution modes that do not ask the server for the types of
// the arguments: they cannot send lists of ids.
func CheckMode(mode pgx.QueryExecMode) error {
	if mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
		return fmt.Errorf("the pool sends statements in the mode %q (DefaultQueryExecMode, default_query_exec_mode), in which lists cannot be sent: "+
			"leave it out, or use cache_describe", mode)
	}
	return nil
}

// Begin begins a transaction at READ COMMITTED. Its statements are sent as they are.
func (p *Pool) Begin(ctx context.Context) (pgx.Tx, error) {
	return p.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
}

// BeginTx begins a transaction with other options.
func (p *Pool) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	conn, _, err := p.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, options)
	if err != nil {
		discard(conn.Conn(), err)
		conn.Release()
		return nil, err
	}
	return &transaction{Tx: tx, conn: conn}, nil
}

// InTx runs f in a transaction at READ COMMITTED, for statements of the queue.
func (p *Pool) InTx(ctx context.Context, f func(db DB) error) error {
	return pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error { return f(p.In(tx)) })
}

// Snapshot runs f in a transaction that only reads, all of it as of one moment, for statements of the queue.
func (p *Pool) Snapshot(ctx context.Context, f func(db DB) error) error {
	return pgx.BeginTxFunc(ctx, p, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error { return f(p.In(tx)) })
}

// transaction releases its connection at its end.
type transaction struct {
	pgx.Tx
	conn *pgxpool.Conn
}

func (t *transaction) Commit(ctx context.Context) error   { return t.end(t.Tx.Commit(ctx)) }
func (t *transaction) Rollback(ctx context.Context) error { return t.end(t.Tx.Rollback(ctx)) }

func (t *transaction) end(err error) error {
	if t.conn != nil {
		t.conn.Release()
		t.conn = nil
	}
	return err
}

// SendBatch sends statements in one transaction and one round trip.
func (p *Pool) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	qualifyBatch(batch, p.SQL)
	conn, ready, err := p.Acquire(ctx)
	if err != nil {
		return pgx.FailedBatchResults(batch, err)
	}
	return p.send(ctx, conn, ready, batch)
}

func (p *Pool) send(ctx context.Context, conn *pgxpool.Conn, ready bool, batch *pgx.Batch) pgx.BatchResults {
	if ready {
		return &results{BatchResults: conn.SendBatch(ctx, batch), conn: conn}
	}
	levelled := &pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(batch.QueuedQueries)+2)}
	levelled.Queue(LevelSQL)
	if p.NoJIT {
		levelled.Queue(noJITSQL)
	}
	levelled.QueuedQueries = append(levelled.QueuedQueries, batch.QueuedQueries...)
	sent := &results{BatchResults: conn.SendBatch(ctx, levelled), conn: conn}
	// An error of the connection is returned again by the next statement.
	_, sent.err = sent.Exec()
	if p.NoJIT && sent.err == nil {
		_, sent.err = sent.Exec()
	}
	return sent
}

// results releases its connection at its end.
type results struct {
	pgx.BatchResults
	conn *pgxpool.Conn
	err  error // of LevelSQL or noJITSQL
}

func (r *results) Close() error {
	err := r.BatchResults.Close()
	if r.err != nil {
		err = r.err
	}
	if r.conn != nil {
		discard(r.conn.Conn(), err)
		r.conn.Release()
		r.conn = nil
	}
	return err
}

// QueryAtAnyLevel runs a statement that means the same at any isolation level,
// without the statement that sets the level.
func (p *Pool) QueryAtAnyLevel(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	conn, _, err := p.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return queryOn(ctx, conn, p.SQL(sql), args)
}

// queryOn runs a statement on a connection and releases the connection with the rows.
func queryOn(ctx context.Context, conn *pgxpool.Conn, sql string, args []any) (pgx.Rows, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		discard(conn.Conn(), err)
		conn.Release()
		return nil, err
	}
	return &rowsOf{Rows: rows, end: func(err error) error {
		discard(conn.Conn(), err)
		conn.Release()
		return nil
	}}, nil
}

// Query runs a statement. After its rows were read to the end or closed, their error
// includes that of the commit.
func (p *Pool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	sql = p.SQL(sql)
	conn, ready, err := p.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if ready {
		return queryOn(ctx, conn, sql, args)
	}
	if len(args) > 0 {
		if _, is := args[0].(pgx.QueryExecMode); is {
			conn.Release()
			return p.queryInTx(ctx, sql, args)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(sql, args...)
	results := p.send(ctx, conn, ready, batch)
	answer, err := results.Query()
	if err != nil {
		_ = results.Close() // the first error says what went wrong
		return nil, err
	}
	return &rowsOf{Rows: answer, end: func(error) error { return results.Close() }}, nil
}

// queryInTx is Query for a statement with an execution mode of its own, which a
// batch cannot have. It costs three round trips.
func (p *Pool) queryInTx(ctx context.Context, sql string, args []any) (pgx.Rows, error) {
	tx, err := p.Begin(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		_ = tx.Rollback(ctx) // the first error says what went wrong
		return nil, err
	}
	return &rowsOf{Rows: rows, end: func(err error) error {
		if err != nil {
			return tx.Rollback(ctx)
		}
		return tx.Commit(ctx)
	}}, nil
}

// Exec runs a statement and discards its rows.
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := p.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// CopyFrom copies rows into a table, which means the same at any level.
func (p *Pool) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	conn, err := p.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	n, err := conn.CopyFrom(ctx, table, columns, rows)
	discard(conn.Conn(), err)
	return n, err
}

// QueryRow runs a statement and reads one row.
func (p *Pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, sql, args...)
	return &rowOf{rows: rows, err: err}
}
