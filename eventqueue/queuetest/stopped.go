package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Stopped is a clock of a database that stands still until it is set. It needs no bubble: the clock of the program
// goes on meanwhile. It is safe for concurrent use.
type Stopped struct {
	mu   sync.Mutex
	conn *pgx.Conn
	now  time.Time
}

// Stop connects to a database with the queue's schema, whose owner the URL has to name, gives it the clock unless it
// has that already, and sets it. Use the database for nothing else. Connections that are opened after it go by the clock,
// unless they have a search_path of their own; those of a pool that follows it do in any case.
func Stop(ctx context.Context, databaseURL string, at time.Time) (*Stopped, error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, fmt.Errorf("connect to stop the clock: %w", err)
	}
	s := &Stopped{conn: conn}
	if err = install(ctx, conn); err == nil {
		_, err = conn.Exec(ctx, followAllSQL)
	}
	if err == nil {
		err = s.Set(ctx, at)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("give the database a clock: %w", err), conn.Close(ctx))
	}
	return s, nil
}

// followAllSQL has connections to the database begin with the clock before that of Postgres.
const followAllSQL = `
DO $$
BEGIN
    IF current_setting('search_path') NOT LIKE 'queuetest, %' THEN
        EXECUTE format('ALTER DATABASE %I SET search_path = queuetest, pg_catalog, %s', current_database(), current_setting('search_path'));
    END IF;
END
$$`

// Now returns the time that the clock shows, in microseconds as Postgres has them.
func (s *Stopped) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Set sets the clock.
func (s *Stopped) Set(ctx context.Context, to time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.conn.Exec(ctx, `SELECT setval('queuetest.clock', $1)`, to.UnixMicro()); err != nil {
		return fmt.Errorf("set the clock of the database: %w", err)
	}
	s.now = time.UnixMicro(to.UnixMicro()).UTC()
	return nil
}

// Follow changes the configuration of a pool so that its connections go by the clock.
func (s *Stopped) Follow(config *pgxpool.Config) { after(config, followSQL) }

// Close closes the connection of the clock, which stays as it is.
func (s *Stopped) Close(ctx context.Context) error { return s.conn.Close(ctx) }
