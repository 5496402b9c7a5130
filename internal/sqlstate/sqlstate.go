// Package sqlstate says what an error of Postgres means for the one who sent the
// statement. It goes by the classes of SQLSTATE, the first two characters of a code.
package sqlstate

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// class is the class of the error that Postgres answered with; empty when it is none.
func class(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) < 2 {
		return ""
	}
	return pg.Code[:2]
}

// Refused reports whether the database has judged the statement or its data, so
// that the same statement would fail again. Other classes are troubles that pass:
// connections (08), read-only (25), conflicts (40), resources (53), locks (55),
// shutdowns and time-outs (57), the system (58).
func Refused(err error) bool {
	switch class(err) {
	case "", "08", "25", "40", "53", "55", "57", "58":
		return false
	default:
		return true
	}
}

// BlamesRow reports whether a refusal speaks of data. One that speaks of the statement
// (0A: its plan; 26: its name; 42: its syntax, names and rights) or of the session (28,
// 3D, 3F) may be about all rows.
func BlamesRow(err error) bool {
	switch class(err) {
	case "", "0A", "26", "28", "3D", "3F", "42":
		return false
	default:
		return true
	}
}

// MayHaveCommitted reports whether a statement that failed may have happened all the
// same. It has not when the database says so itself, but for the classes that tell of a
// connection or a server that goes away (08, 57, 58), nor when nothing was sent.
func MayHaveCommitted(err error) bool {
	switch class(err) {
	case "":
		return !pgconn.SafeToRetry(err)
	case "08", "57", "58":
		return true
	default:
		return false
	}
}
