package eventqueue

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// DefaultLockTimeout is the lock timeout of a database for which nobody has set one.
const DefaultLockTimeout = time.Minute

// LockTimeouts is a store whose database knows how long locks are valid, so that all programs use
// the same lock timeout; pgstore.Store is one.
type LockTimeouts interface {
	// AgreeOnLockTimeout returns how long the locks of the database are valid without
	// being renewed. A database without that setting gets it: own, or
	// DefaultLockTimeout when own is 0.
	AgreeOnLockTimeout(ctx context.Context, own time.Duration) (time.Duration, error)
}

// LockTimeoutError is the error of a program whose configured lock timeout differs from that of its
// database.
type LockTimeoutError struct{ Own, Database time.Duration }

// Error says what to do.
func (e *LockTimeoutError) Error() string {
	return fmt.Sprintf("the lock timeout (LockTimeout, LOCK_TIMEOUT) is %s here and %s in the database, where it must be the same for all programs: "+
		"leave it out, which takes the database's, or change that with: eventctl settings set lock-timeout %s", e.Own, e.Database, e.Own)
}

// AgreeOnLockTimeout returns the lock timeout of the store's database. own is the configured one, 0
// for none; when it differs from the database's, the error is a *LockTimeoutError. For a store that
// is no LockTimeouts it is own, or the default. Worker.Run of package worker and Requeuer of
// package control call it themselves.
func AgreeOnLockTimeout(ctx context.Context, store any, own time.Duration) (time.Duration, error) {
	database, ok := store.(LockTimeouts)
	if !ok {
		return cmp.Or(own, DefaultLockTimeout), nil
	}
	agreed, err := database.AgreeOnLockTimeout(ctx, own)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the lock timeout of the database: %w", err)
	case own != 0 && own != agreed:
		return 0, &LockTimeoutError{own, agreed}
	default:
		return agreed, nil
	}
}

// UnfitError means that a database or a notifier cannot be used as it is, and that waiting does not
// help: a wrong password, a missing right, a schema that is too old, a subscription that would lose
// notifications. Err describes what to do.
type UnfitError struct{ Err error }

// Error is that of Err.
func (e *UnfitError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnfitError) Unwrap() error { return e.Err }
