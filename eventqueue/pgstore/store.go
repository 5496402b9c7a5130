package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/wakeups"
)

// Store is the queue in one database. It is safe for concurrent use.
type Store struct {
	pool      *pgsession.Pool
	share     *share       // of what may wait for strangers
	by        *audit.Actor // of audited changes; nil: they are not
	skipUntil atomic.Int64 // nanoseconds of the Unix time; see lockwait.go
	due       due          // see due.go
	ranks     ranks        // see low.go

	// refused are events that cannot be notified, and stuck those whose ordering groups cannot be
	// advanced.
	refused, stuck refusedRows

	await maintenance.AwaitTake // of searches for lost notifications; nil: they take what they find at once; see search.go

	relay wakeups.State // of the connection that wakes the relay
	woken chan struct{} // whenever that has woken it; for whoever lifts rules
	log   *zap.Logger   // of that connection; nil: none

	runs []string // the handlers of whose events lost notifications are searched for; nil: all; see search.go
}

// New makes a Store on a pool, which stays the caller's to close. What the queue
// needs is set for each transaction on one that Open has not made, which costs
// claims and completions two statements more; see also [Store.Check].
func New(pool *pgxpool.Pool) *Store { return NewIn("", pool) }

// NewIn is New for the queue in a schema; "" is public. The search path of the pool does not matter.
func NewIn(schema pgsession.Schema, pool *pgxpool.Pool) *Store {
	return &Store{pool: pgsession.On(pool, schema), share: newShare(pool), woken: make(chan struct{}, 1)}
}

// LogTo has the connection that wakes the relay log what keeps wake-ups from it. Call it before anything else.
func (s *Store) LogTo(log *zap.Logger) { s.log = log }

// Pool is the pool that the store was made on.
func (s *Store) Pool() *pgxpool.Pool { return s.pool.Shared }

// Schema is the schema of the queue.
func (s *Store) Schema() pgsession.Schema { return s.pool.Schema }

// channel returns the name of a channel of the queue.
func (s *Store) channel(name string) string { return s.pool.Schema.Channel(name) }

// Check reports whether the queue can work over the store's pool, and says what to do if
// not: a pooler of transactions ([pgsession.ErrTransactionPooling]), a database
// that does not write, an encoding that is not UTF-8, tables that are missing in the store's
// schema, or rights that the user of the pool lacks for the kinds of work that
// the program does. The error is an *eventqueue.UnfitError unless waiting may help,
// as when the server does not answer. A pool that Open has not made is also checked at
// its first use, except for the tables and the rights. Call Check at the start to learn of an
// error at once; a Worker does.
func (s *Store) Check(ctx context.Context, works ...Work) error {
	if err := s.pool.Check(ctx); err != nil {
		return explain(err)
	}
	if err := pgsession.CheckSchema(ctx, s.pool.Shared, s.pool.Schema); err != nil {
		return explain(err)
	}
	return s.checkRights(ctx, works)
}

// What a connection of Open does not wait longer for.
const (
	connectTimeout   = 5 * time.Second
	statementTimeout = time.Minute
	lockTimeout      = 10 * time.Second
	idleInTxTimeout  = 5 * time.Minute
	// deadPeerTimeout is for a server that vanished without a word, as behind a
	// network that was cut.
	deadPeerTimeout = 20 * time.Second
	// openTakes bounds how long Open waits for a database that accepts a connection and does not answer.
	openTakes = 5 * time.Second
)

// Open makes a pool of connections to a database and connects once, to report at once
// what is wrong: wrong settings are an error, a database that cannot be reached yet is
// none. Its pool connects when it is used, and until then each use
// says why it cannot; a Worker waits. Open blocks for some seconds at most.
//
// name is shown in pg_stat_activity; maxConns bounds the pool, 0 leaves it to the URL.
// Of the settings, timeouts and the like in the URL win; how queries are planned
// (without scans of whole tables where there is an index, and without JIT) and the
// isolation level are the queue's. They are set by SQL on each connection and read
// back, so that poolers of sessions work; poolers of transactions are refused. No
// error shows any part of the URL.
func Open(ctx context.Context, databaseURL, name string, maxConns int32) (*pgxpool.Pool, error) {
	pool, err := NewPool(databaseURL, name, maxConns)
	if err != nil {
		return nil, err
	}
	looking, cancel := context.WithTimeout(ctx, openTakes)
	defer cancel()
	if err := explain(pgsession.On(pool, "").Check(looking)); ctx.Err() != nil || isUnfit(err) {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// NewPool is Open without the connection: it returns an error only when the URL is
// wrong, and connects to nothing.
func NewPool(databaseURL, name string, maxConns int32) (*pgxpool.Pool, error) {
	return NewPoolWith(pgsession.Access{}, databaseURL, name, maxConns)
}

// NewPoolWith is NewPool for a server that is reached in another way than the URL says.
func NewPoolWith(access pgsession.Access, databaseURL, name string, maxConns int32) (*pgxpool.Pool, error) {
	config, err := pgsession.ParseURL(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	if err := pgsession.CheckMode(config.ConnConfig.DefaultQueryExecMode); err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	if err := configure(config, name, maxConns); err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	if err := access.Apply(config); err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("open the pool of database connections: %w", err)
	}
	return pool, nil
}

// explain says what to do about why the database could not be used. It is an
// *eventqueue.UnfitError unless waiting may help.
func explain(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case pgsession.Unreachable(err):
		return fmt.Errorf("%s: %w", pgsession.Remedy(err), err)
	default:
		return &eventqueue.UnfitError{Err: fmt.Errorf("cannot use the database; check DATABASE_URL: %w", err)}
	}
}

func isUnfit(err error) bool {
	var unfit *eventqueue.UnfitError
	return errors.As(err, &unfit)
}

// configure adds what is the same for every connection.
func configure(config *pgxpool.Config, name string, maxConns int32) error {
	c := config.ConnConfig
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = name
	}
	settings, err := pgsession.TakeSettings(&c.Config, pgsession.Settings{
		"statement_timeout":                   milliseconds(statementTimeout),
		"lock_timeout":                        milliseconds(lockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleInTxTimeout),
		// The largest batch of counts needs that much; with less it is written to temporary files.
		"work_mem": "16MB",
	}, planning)
	if err != nil {
		return err
	}
	var pooled atomic.Bool // whether the way to the database was looked at
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// The first one may be made long after Open, when the database is there.
		if !pooled.Load() {
			if err := pgsession.CheckPooling(ctx, conn.PgConn(), &conn.Config().Config); err != nil {
				return err
			}
			pooled.Store(true)
		}
		pgsession.ClampTimes(conn)
		return pgsession.Prepare(ctx, conn.PgConn(), settings)
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.ValidateConnect == nil && settings["default_transaction_read_only"] == "" {
		c.ValidateConnect = pgsession.CheckWrites
	}
	c.DialFunc = Dial
	if maxConns > 0 {
		config.MaxConns = maxConns
	}
	return nil
}

// Dial connects to a server over TCP, or a socket, as the pools of this package do: a
// connection to a server that has vanished ends after 20 seconds.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true,
		Idle: deadPeerTimeout / 2, Interval: deadPeerTimeout / 4, Count: 2}, Control: giveUpDeadPeers}
	return dialer.DialContext(ctx, network, address)
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// InTx implements eventqueue.EmitStore, at READ COMMITTED.
func (s *Store) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	return s.share.hold(ctx, func() error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return f(context.WithValue(ctx, heldKey{}, true), tx) })
	})
}

// changing runs f in a transaction of its own that may wait for strangers: a change by an operator.
func (s *Store) changing(ctx context.Context, f func(tx pgsession.DB) error) error {
	return s.share.wait(ctx, func() error { return s.pool.InTx(ctx, f) })
}

// int64s gives ids to pgx in the type that it encodes fastest.
func int64s(ids []eventqueue.EventID) []int64 {
	out := make([]int64, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}

func scanNotification(row pgx.CollectableRow) (n eventqueue.Notification, err error) {
	err = row.Scan(&n.Event, (*[16]byte)(&n.Canvas))
	return n, err
}

// appendTo reads rows of (id, canvas_id), all or none.
func appendTo(taken *[]eventqueue.Notification) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) error {
		some, err := pgx.CollectRows(rows, scanNotification)
		if err == nil {
			*taken = append(*taken, some...)
		}
		return err
	}
}

// committed adds to taken what a statement returns, once it is known to have committed: a deferred constraint
// may refuse rows that were returned already.
func committed(taken *[]eventqueue.Notification, run func(some *[]eventqueue.Notification) error) error {
	var some []eventqueue.Notification
	if err := run(&some); err != nil {
		return err
	}
	*taken = append(*taken, some...)
	return nil
}
