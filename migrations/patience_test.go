package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// errNoLock is the error of a migration that has waited for a lock for too long.
var errNoLock = fmt.Errorf("migrate: %w", &pgconn.PgError{Code: "55P03", Message: "canceling statement due to lock timeout"})

func TestMigrationIsRetriedUntilItHasItsLocks(t *testing.T) {
	t.Parallel()
	deadlock, syntax := &pgconn.PgError{Code: "40P01"}, &pgconn.PgError{Code: "42601"}
	for name, c := range map[string]struct {
		answers []error // and nil afterwards
		tries   int
		want    error
	}{
		"at once":        {nil, 1, nil},
		"no lock":        {[]error{errNoLock, errNoLock}, 3, nil},
		"a deadlock":     {[]error{deadlock}, 2, nil},
		"a broken one":   {[]error{errNoLock, syntax}, 2, syntax},
		"locked forever": {make([]error, 1000), lockTries, errNoLock},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, tries := time.Now(), 0
				err := patiently(t.Context(), func() error {
					tries++
					switch {
					case len(c.answers) == 1000:
						return errNoLock
					case tries <= len(c.answers):
						return c.answers[tries-1]
					default:
						return nil
					}
				})
				if tries != c.tries || !errors.Is(err, c.want) {
					t.Errorf("tried %d times and returned %v, want %d and %v", tries, err, c.tries, c.want)
				}
				if took := time.Since(began); took != time.Duration(tries-1)*lockPause {
					t.Errorf("the pauses are %s", took)
				}
				if errors.Is(c.want, errNoLock) && !strings.Contains(err.Error(), "other transactions held a table that it changes: end them") {
					t.Errorf("the error does not say what to do: %v", err)
				}
			})
		})
	}
}

// TestStoppedMigrationIsNotRetried (I17): Ctrl-C ends the wait.
func TestStoppedMigrationIsNotRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		tries := 0
		if err := patiently(ctx, func() error { tries++; return errNoLock }); !errors.Is(err, errNoLock) || tries != 1 {
			t.Errorf("tried %d times and returned %v", tries, err)
		}
	})
}
