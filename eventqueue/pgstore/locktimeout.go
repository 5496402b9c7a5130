package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/backoff"
)

const (
	settingsSQL = `
SELECT (extract(epoch FROM lock_timeout) * 1000000)::bigint, coalesce((extract(epoch FROM lock_timeout_before) * 1000000)::bigint, 0)
FROM events_v2_settings`

	firstLockTimeoutSQL = `INSERT INTO events_v2_settings (lock_timeout) VALUES ($1) ON CONFLICT DO NOTHING`

	setLockTimeoutSQL = `
INSERT INTO events_v2_settings AS s (lock_timeout) VALUES ($1)
ON CONFLICT (singleton) DO UPDATE SET lock_timeout = excluded.lock_timeout,
    lock_timeout_before = CASE WHEN s.lock_timeout = excluded.lock_timeout THEN s.lock_timeout_before
        ELSE greatest(s.lock_timeout, s.lock_timeout_before) END`

	// Nothing is finalized while another transaction changes the lock timeout, nor, unless $3,
	// while some locks are valid by the old time only: their holders may be alive. Unless $4,
	// younger locks prevent it, too, if a holder that goes by the old time may renew them too
	// late for the new one.
	finalizeSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), held AS MATERIALIZED (
    SELECT e.id, e.locked_at
    FROM events_v2 e, clock, events_v2_settings s
    WHERE NOT $3 AND s.lock_timeout_before > s.lock_timeout
      AND e.locked_at <= now - s.lock_timeout AND e.locked_at > now - s.lock_timeout_before
), young AS MATERIALIZED (
    SELECT count(*) AS locks
    FROM events_v2 e, clock, events_v2_settings s
    WHERE NOT $3 AND NOT $4 AND s.lock_timeout_before > 2 * s.lock_timeout AND e.locked_at > now - s.lock_timeout
), finalized AS (
    UPDATE events_v2_settings SET lock_timeout_before = NULL
    WHERE lock_timeout = $1 AND lock_timeout_before = $2 AND NOT EXISTS (SELECT FROM held) AND (SELECT locks FROM young) = 0
    RETURNING 1
)
SELECT EXISTS (SELECT FROM finalized), count(held.id), coalesce(min(held.id), 0),
    coalesce(max(held.locked_at + s.lock_timeout_before - now), interval '0'), (SELECT locks FROM young)
FROM clock, events_v2_settings s LEFT JOIN held ON true`
)

// LockTimeoutInUseError is the error of a change of the lock timeout that cannot be
// finalized yet: there are locks that are valid by the old time only.
type LockTimeoutInUseError struct {
	// Locks is how many events have locks that are valid by the time before the change
	// and by the new one no more; Event is the first of them.
	Locks int64
	Event eventqueue.EventID
	// Within is how long it takes at most until none is, unless one is renewed.
	Within time.Duration
}

// Error returns the message, which ends with what to do.
func (e *LockTimeoutInUseError) Error() string {
	return fmt.Sprintf("%d events, the first of them %s, have locks that are valid only by the time before the change: "+
		"a program that began before it may be running them, and they would run twice; restart all programs, and try again: "+
		"the locks of programs that have died expire within %s", e.Locks, e.Event, e.Within.Round(time.Second))
}

// errChanging: two operators at once.
var errChanging = errors.New("the lock timeout was changed at the same time: check it with eventctl settings show, and try again")

// Settings are those that all programs of a database share.
type Settings struct {
	// LockTimeout is how long a lock is valid without being renewed.
	LockTimeout time.Duration
	// LockTimeoutBefore is the lock timeout before a change that is not final yet, or 0.
	LockTimeoutBefore time.Duration
	// Set is false if it was never set; LockTimeout is the default then.
	Set bool
}

// ValidFor is how long a lock counts as valid: the longer of the two times.
func (s Settings) ValidFor() time.Duration { return max(s.LockTimeout, s.LockTimeoutBefore) }

// Settings reads the settings of the database.
func (s *Store) Settings(ctx context.Context) (Settings, error) {
	var micros, before int64
	err := s.pool.QueryRow(ctx, settingsSQL).Scan(&micros, &before)
	if errors.Is(err, pgx.ErrNoRows) {
		return Settings{LockTimeout: locktimeout.Default}, nil
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings: %w", err)
	}
	return Settings{time.Duration(micros) * time.Microsecond, time.Duration(before) * time.Microsecond, true}, nil
}

// LockTimeout returns the lock timeout of the database, and whether it is set.
func (s *Store) LockTimeout(ctx context.Context) (timeout time.Duration, set bool, err error) {
	settings, err := s.Settings(ctx)
	return settings.LockTimeout, settings.Set, err
}

// AgreeOnLockTimeout implements locktimeout.Store. A user who may not write the
// setting leaves that to another. Until then locks are valid for the default: who
// believes in its own for a shorter time is safe, and a longer one is refused (I4).
func (s *Store) AgreeOnLockTimeout(ctx context.Context, own time.Duration) (time.Duration, error) {
	settings, err := s.Settings(ctx)
	if err != nil || settings.Set {
		return settings.LockTimeout, err
	}
	if own == 0 {
		own = locktimeout.Default
	}
	_, err = s.pool.Exec(ctx, firstLockTimeoutSQL, own)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42501" {
		return min(own, locktimeout.Default), nil
	}
	if err != nil {
		return 0, fmt.Errorf("set the lock timeout: %w", err)
	}
	settings, err = s.Settings(ctx) // another program may have been first
	return settings.LockTimeout, err
}

func lockTimeoutRow(action string) auditedRow {
	return auditedRow{action: action, target: map[string]string{"setting": "lock_timeout"}, read: settingsAsJSONSQL}
}

// SetLockTimeout changes the lock timeout of the database. Until FinalizeLockTimeout
// a lock is valid for the longer of the new time and the old one, so that programs that
// still renew by the old one lose no lock.
func (s *Store) SetLockTimeout(ctx context.Context, to time.Duration) error {
	err := s.change(ctx, lockTimeoutRow("set_lock_timeout"), func(tx pgsession.DB) error {
		_, err := tx.Exec(ctx, setLockTimeoutSQL, to)
		return err
	})
	if err != nil {
		return fmt.Errorf("set the lock timeout: %w", err)
	}
	return nil
}

// FinalizeLockTimeout ends a change of the lock timeout: from then on only the new time
// counts. Call it when no program runs any more that began before the change. If a lock
// shows that one may, it returns a *LockTimeoutInUseError and changes nothing, unless
// force is true. While there are locks, and the new time is shorter than half of the old
// one, it watches them for a little more than twice the new time, at most: a program that
// renews by the old time lets one of its locks become older than the new time within that.
// It reads all events that have not ended, ten times in each new time. Without a change to
// finalize it does nothing.
func (s *Store) FinalizeLockTimeout(ctx context.Context, force bool) error {
	settings, err := s.Settings(ctx)
	if err != nil || settings.LockTimeoutBefore == 0 {
		return err
	}
	step := max(settings.LockTimeout/watchSteps, time.Millisecond)
	for began := time.Now(); ; {
		watched := time.Since(began) > 2*settings.LockTimeout+step
		var finalized bool
		var inUse LockTimeoutInUseError
		var young int64
		err = s.change(ctx, lockTimeoutRow("finalize_lock_timeout"), func(tx pgsession.DB) error {
			return tx.QueryRow(ctx, finalizeSQL, settings.LockTimeout, settings.LockTimeoutBefore, force, watched).
				Scan(&finalized, &inUse.Locks, &inUse.Event, &inUse.Within, &young)
		})
		switch {
		case err != nil:
			return fmt.Errorf("finalize the lock timeout: %w", err)
		case finalized:
			return nil
		case inUse.Locks > 0:
			return &inUse
		case young == 0:
			return errChanging
		}
		if backoff.Sleep(ctx, step); ctx.Err() != nil {
			return fmt.Errorf("finalize the lock timeout: watch %d locks: %w", young, ctx.Err())
		}
	}
}

// watchSteps is how often FinalizeLockTimeout looks at the locks in the time for which a
// lock is valid.
const watchSteps = 10
