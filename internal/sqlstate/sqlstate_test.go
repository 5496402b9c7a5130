package sqlstate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/internal/sqlstate"
)

// unsent is an error of pgx before it has sent anything.
type unsent struct{}

func (unsent) Error() string     { return "the connection is closed" }
func (unsent) SafeToRetry() bool { return true }

func TestMayHaveCommittedKnowsLostAnswers(t *testing.T) {
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

// TestUnusableTextIsRecognized: Postgres' errors about NUL and about invalid UTF-8 are recognized; no other one is.
func TestUnusableTextIsRecognized(t *testing.T) {
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

// TestClassesAreConsistent says of each class of SQLSTATE whether its errors are refusals, concern a row, and may follow a commit.
func TestClassesAreConsistent(t *testing.T) {
	t.Parallel()
	type meaning struct{ refused, row, committed bool }
	temporary, refusal, data := meaning{row: true}, meaning{refused: true}, meaning{refused: true, row: true}
	gone := meaning{row: true, committed: true}
	classes := map[string]meaning{
		"08": gone, "57": gone, "58": gone, // connections, shutdowns, the system
		"25": temporary, "40": temporary, "53": temporary, "55": temporary, // read-only, conflicts, resources, locks
		"0A": refusal, "26": refusal, "28": refusal, "3D": refusal, "3F": refusal, "42": refusal, // statements and sessions
	}
	for _, class := range strings.Fields("01 02 03 09 0B 0F 0L 0P 0Z 20 21 22 23 24 27 2B 2D 2F 34 38 39 3B 44 54 F0 HV P0 XX") {
		classes[class] = data
	}
	for class, want := range classes {
		for _, code := range []string{class, class + "000", class + "P01"} {
			err := fmt.Errorf("write: %w", &pgconn.PgError{Code: code})
			if got := (meaning{sqlstate.Refused(err), sqlstate.ConcernsRow(err), sqlstate.MayHaveCommitted(err)}); got != want {
				t.Errorf("%s: %+v, want %+v", code, got, want)
			}
		}
	}
	for _, err := range []error{errors.New("reset"), &pgconn.PgError{}, &pgconn.PgError{Code: "5"}} {
		if sqlstate.Refused(err) || sqlstate.ConcernsRow(err) {
			t.Errorf("%v counts as a refusal", err)
		}
	}
}
