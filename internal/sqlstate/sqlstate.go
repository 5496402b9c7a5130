// Package sqlstate classifies the errors of Postgres by what they mean for the sender of the
// statement. It uses the classes of SQLSTATE, which are the first two characters of a code. Persist tries
// again what they allow to try again.
package sqlstate

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// class returns the class of an error of Postgres; empty for any other error.
func class(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) < 2 {
		return ""
	}
	return pg.Code[:2]
}

// Refused reports whether the database has refused the statement or its data, so that the
// same statement would fail again. Errors of the other classes are temporary: connections
// (08), read-only (25), conflicts (40), resources (53), locks (55), shutdowns and time-outs
// (57), the system (58).
func Refused(err error) bool {
	switch class(err) {
	case "", "08", "25", "40", "53", "55", "57", "58":
		return false
	default:
		return true
	}
}

// ConcernsRow reports whether a refusal concerns the data of a row. A refusal that concerns the
// statement (0A: its plan; 26: its name; 42: its syntax, names and rights) or the session
// (28, 3D, 3F) may concern all rows.
func ConcernsRow(err error) bool {
	switch class(err) {
	case "", "0A", "26", "28", "3D", "3F", "42":
		return false
	default:
		return true
	}
}

// MayHaveCommitted reports whether a statement that returned an error may have committed
// nevertheless. It cannot have committed if nothing was sent, as when no connection could be
// made, if its transaction was rolled back, or if the error is from the database. Errors about a
// connection or a server that goes away (classes 08, 57, 58) are exceptions.
func MayHaveCommitted(err error) bool {
	var connect *pgconn.ConnectError
	if err == nil || errors.As(err, &connect) || errors.Is(err, pgx.ErrTxCommitRollback) {
		return false
	}
	if errors.Is(err, pgconn.ErrConnClosed) {
		// pgx counts it as safe to retry, and returns it for a COMMIT, too, whose connection was cut
		// before its answer.
		return true
	}
	switch class(err) {
	case "":
		return !pgconn.SafeToRetry(err)
	case "08", "57", "58":
		return true
	default:
		return false
	}
}

// RefusedKey returns what the functions of the queue say of a unique key that an emit cannot have; empty for any other error.
func RefusedKey(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.ColumnName != "unique_key" {
		return ""
	}
	return pg.Message
}

// UnusableText reports whether Postgres has refused a text that it cannot hold: with the character NUL, or not UTF-8.
func UnusableText(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "22021" || pg.Code == "22P05")
}
