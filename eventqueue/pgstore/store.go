package pgstore

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
)

// Store is the queue in one database. It is safe for concurrent use.
type Store struct {
	pool           *pgxpool.Pool
	settings       []string     // what is sent before claims and ends on this pool; see patience.go
	impatientUntil atomic.Int64 // nanoseconds of the Unix time; see patience.go
}

// New makes a Store on a pool, which stays the caller's to close. On one that
// Open has not made, claims and ends cost one statement more.
func New(pool *pgxpool.Pool) *Store {
	s := &Store{pool: pool}
	have := pool.Config().ConnConfig.RuntimeParams
	for key, value := range planning {
		if have[key] != value {
			s.settings = []string{planSQL}
		}
	}
	return s
}

// Pool is the pool that the store was made on.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// What a connection of Open does not wait longer for.
const (
	connectTimeout   = 5 * time.Second
	statementTimeout = time.Minute
	lockTimeout      = 10 * time.Second
	idleInTxTimeout  = 5 * time.Minute
	// deadPeerTimeout is for a server that vanished without a word, as behind a
	// network that was cut.
	deadPeerTimeout = 20 * time.Second
)

// Open connects to a database. name is shown in pg_stat_activity; maxConns
// bounds the pool, 0 leaves it to the URL. Settings in the URL win. Queries on its
// connections are planned without scans of whole tables where there is an index,
// and without JIT. It connects once, to tell at once what is wrong.
func Open(ctx context.Context, databaseURL, name string, maxConns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	settings := map[string]string{
		"application_name":                    name,
		"statement_timeout":                   milliseconds(statementTimeout),
		"lock_timeout":                        milliseconds(lockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleInTxTimeout),
		// I7: a claim has to see the rules that were committed while it waited.
		"default_transaction_isolation": "read committed",
	}
	maps.Copy(settings, planning)
	for key, value := range settings {
		if _, set := config.ConnConfig.RuntimeParams[key]; !set {
			config.ConnConfig.RuntimeParams[key] = value
		}
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.ValidateConnect == nil {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true,
		Idle: deadPeerTimeout / 2, Interval: deadPeerTimeout / 4, Count: 2}, Control: giveUpDeadPeers}
	config.ConnConfig.DialFunc = dialer.DialContext
	if maxConns > 0 {
		config.MaxConns = maxConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the pool of database connections: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("cannot reach the database; check DATABASE_URL and that Postgres runs and is no replica: %w", err)
	}
	return pool, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// InTx implements eventqueue.EmitStore.
func (s *Store) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return f(ctx, tx) })
}

// in is the transaction to use, or the pool.
func (s *Store) in(db eventqueue.DB) eventqueue.DB {
	if db != nil {
		return db
	}
	return s.pool
}

// int64s gives ids to pgx in the type that it encodes fastest.
func int64s(ids []eventqueue.EventID) []int64 {
	out := make([]int64, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}

// queryIDs runs a statement that returns ids.
func queryIDs(ctx context.Context, db eventqueue.DB, sql string, args ...any) ([]eventqueue.EventID, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
}

// queryNotifications runs a statement that returns (id, canvas_id).
func queryNotifications(ctx context.Context, db eventqueue.DB, sql string, args ...any) ([]eventqueue.Notification, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanNotification)
}

func scanNotification(row pgx.CollectableRow) (n eventqueue.Notification, err error) {
	err = row.Scan(&n.Event, (*[16]byte)(&n.Canvas))
	return n, err
}
