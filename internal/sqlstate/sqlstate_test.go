package sqlstate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/internal/sqlstate"
)

// unsent is an error of pgx before it has sent anything.
type unsent struct{}

func (unsent) Error() string     { return "the connection is closed" }
func (unsent) SafeToRetry() bool { return true }

func TestMayHaveCommitted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":            {nil, false},
		"nothing was sent":    {unsent{}, false},
		"no connection":       {&pgconn.ConnectError{}, false},
		"rolled back":         {fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback), false},
		"refused":             {&pgconn.PgError{Code: "23505"}, false},
		"a conflict":          {&pgconn.PgError{Code: "40001"}, false},
		"shut down":           {&pgconn.PgError{Code: "57P01"}, true},
		"an unknown error":    {errors.New("read: connection reset by peer"), true},
		"a closed connection": {fmt.Errorf("commit: %w", pgconn.ErrConnClosed), true},
		"out of time":         {context.DeadlineExceeded, true},
		"a connection error":  {&pgconn.PgError{Code: "08006"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sqlstate.MayHaveCommitted(c.err); got != c.want {
				t.Errorf("%v: %t, want %t", c.err, got, c.want)
			}
		})
	}
}

// TestUnusableText is what Postgres says of NUL, and of bytes that are not UTF-8; no other error is.
func TestUnusableText(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"22021": true, "22P05": true, "22P02": false, "57014": false} {
		if got := sqlstate.UnusableText(fmt.Errorf("emit: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: %t, want %t", code, got, want)
		}
	}
	if sqlstate.UnusableText(errors.New("it has the character NUL")) {
		t.Error("an error that is not of Postgres")
	}
}
