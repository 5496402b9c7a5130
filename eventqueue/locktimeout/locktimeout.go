// Package locktimeout has all programs of a database use one lock timeout: how long a claim is valid
// without being renewed.
//
// The database knows it, and every statement that asks whether a lock has expired reads it there. A
// program needs to know it for what it does between statements: how often it renews its locks, and
// when it gives one up.
package locktimeout

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Default is the lock timeout of a database that has none set.
const Default = time.Minute

// Store is a store whose database knows how long locks are valid, so that all programs use
// the same lock timeout; pgstore.Store is one.
type Store interface {
	// AgreeOnLockTimeout returns how long the locks of the database are valid without
	// being renewed. A database without that setting gets it: own, or
	// Default when own is 0.
	AgreeOnLockTimeout(ctx context.Context, own time.Duration) (time.Duration, error)
}

// Error is the error of a program whose configured lock timeout differs from that of its
// database.
type Error struct{ Own, Database time.Duration }

// Error says what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("the lock timeout (LockTimeout, LOCK_TIMEOUT) is %s here and %s in the database, where it must be the same for all programs: "+
		"leave it out, which takes the database's, or change that with: eventctl settings set lock-timeout %s", e.Own, e.Database, e.Own)
}

// Agree returns the lock timeout of the store's database. own is the configured one, 0
// for none; when it differs from the database's, the error is a *Error. For a store that
// is no Store it is own, or the default. Worker.Run of package worker calls it
// itself.
func Agree(ctx context.Context, store any, own time.Duration) (time.Duration, error) {
	database, ok := store.(Store)
	if !ok {
		return cmp.Or(own, Default), nil
	}
	agreed, err := database.AgreeOnLockTimeout(ctx, own)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the lock timeout of the database: %w", err)
	case own != 0 && own != agreed:
		return 0, &Error{own, agreed}
	default:
		return agreed, nil
	}
}
