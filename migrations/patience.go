package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/internal/backoff"
)

// Whoever uses a table waits behind a migration that waits for a lock on it, heartbeats as well. So a
// migration waits for much less than the minute after which the lock of a running event expires.
const (
	// lockWait is the lock_timeout of a migration, unless the database URL has another one.
	lockWait = "2s"

	// It is tried again after a while, for five minutes in all.
	lockPause = 3 * time.Second
	lockTries = 60
)

// patiently runs a migration until it gets its locks. A migration that got none has changed nothing. After
// lockTries, and when ctx ends, it returns the error of the last try.
func patiently(ctx context.Context, migrate func() error) error {
	for try := 1; ; try++ {
		err := migrate()
		switch {
		case !lacksLock(err):
			return err
		case try == lockTries:
			return fmt.Errorf("%d times, other transactions held a table that it changes: end them (pg_stat_activity shows the oldest xact_start), and run it again: %w", try, err)
		case !backoff.Sleep(ctx, lockPause):
			return err
		}
	}
}

// lacksLock reports whether a migration gave up waiting for a lock, or was in a deadlock.
func lacksLock(err error) bool {
	const lockNotAvailable, deadlock = "55P03", "40P01"
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == lockNotAvailable || refused.Code == deadlock)
}
