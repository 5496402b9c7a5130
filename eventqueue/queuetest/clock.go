package queuetest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgstore"
)

//go:embed install.sql
var installSQL string

// Clock has the clock of one database follow that of the bubble in which it was started. It is safe for concurrent use.
type Clock struct {
	setting sync.Mutex
	conn    *pgx.Conn // guarded by setting, as is shown
	shown   int64     // microseconds of the Unix time

	mu      sync.Mutex
	resting []*restful // that wait for notifications
}

// Start connects to a database with the queue's schema, whose owner the URL has to name, and gives it the clock,
// unless it has that already. Use the database for nothing else.
func Start(ctx context.Context, databaseURL string) (*Clock, error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, fmt.Errorf("connect to set the clock: %w", err)
	}
	if err := install(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("give the database a clock: %w", err), conn.Close(ctx))
	}
	return &Clock{conn: conn}, nil
}

func install(ctx context.Context, conn *pgx.Conn) error {
	var installed bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'queuetest')`).Scan(&installed)
	if err != nil || installed {
		return err
	}
	_, err = conn.Exec(ctx, installSQL)
	return err
}

// Close closes the connection of the clock. Close the pools that follow it before.
func (c *Clock) Close() {
	c.setting.Lock()
	defer c.setting.Unlock()
	_ = c.conn.Close(context.Background()) // nothing is in flight on it
}

// Follow changes the configuration of a pool so that its connections follow the clock, and so that it does nothing
// by itself.
func (c *Clock) Follow(config *pgxpool.Config) {
	config.HealthCheckPeriod, config.MaxConnLifetime, config.MaxConnIdleTime = never, never, never
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.ConnConfig.TLSConfig = nil
	config.ConnConfig.Fallbacks = slices.Clone(config.ConnConfig.Fallbacks)
	for i, f := range config.ConnConfig.Fallbacks {
		config.ConnConfig.Fallbacks[i] = &pgconn.FallbackConfig{Host: f.Host, Port: f.Port}
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &restful{Conn: conn, clock: c, woken: make(chan struct{}, 1)}, nil
	}
	after(config, followSQL+`, set_config('lock_timeout', '1s', false)`)
}

// after has each connection of a pool begin with a statement.
func after(config *pgxpool.Config, sql string) {
	prepare := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if prepare != nil {
			if err := prepare(ctx, conn); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, sql)
		return err
	}
}

// never is longer than any test.
const never = 100_000 * time.Hour

// followSQL has the clock of the test stand before that of Postgres.
const followSQL = `SELECT set_config('search_path', 'queuetest, pg_catalog, ' || current_setting('search_path'), false)`

// show sets the database's clock.
func (c *Clock) show() error {
	c.setting.Lock()
	defer c.setting.Unlock()
	now := time.Now().UnixMicro()
	if now == c.shown {
		return nil
	}
	if _, err := c.conn.Exec(context.Background(), `SELECT setval('queuetest.clock', $1)`, now); err != nil {
		return fmt.Errorf("set the clock of the database: %w", err)
	}
	c.shown = now
	return nil
}

// spread brings those who listen what has been notified.
func (c *Clock) spread() {
	c.mu.Lock()
	resting := slices.Clone(c.resting)
	c.mu.Unlock()
	for _, r := range resting {
		r.ask()
	}
}

func (c *Clock) rests(r *restful) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resting = append(c.resting, r)
}

func (c *Clock) works(r *restful) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resting = slices.DeleteFunc(c.resting, func(other *restful) bool { return other == r })
}

// Pool returns a pool of the queue, as pgstore.Open makes it, on a database with the queue's schema, in which time
// is that of the bubble. The database is for the calling test alone. The pool is closed when the test ends; stop
// workers and relays before, in functions of t.Cleanup at the latest.
func Pool(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	clock, err := Start(context.Background(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clock.Close)
	unclocked, err := pgstore.NewPool(databaseURL, "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	config := unclocked.Config()
	unclocked.Close()
	clock.Follow(config)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
