package pgsession

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// Unreachable reports whether an error means that the database cannot be reached or
// accepts no connection at the moment, so that a later attempt may succeed: no server
// listens or answers, it starts or stops (SQLSTATE 57), it has no connection left
// (53), or the connection broke (08, 58). A wrong password or role (28), a database
// that does not exist (3D) and other errors of the server are settings that waiting
// does not repair; if there are several hosts, one such answer is enough.
func Unreachable(err error) bool {
	passing, lasting := false, false
	for _, leaf := range leaves(err) {
		var refused *pgconn.PgError
		var network net.Error
		var system syscall.Errno
		switch {
		case errors.As(leaf, &refused):
			if passes(refused.Code) {
				passing = true
			} else {
				lasting = true
			}
		case errors.As(leaf, &network), errors.As(leaf, &system), errors.Is(leaf, io.EOF), errors.Is(leaf, io.ErrUnexpectedEOF),
			errors.Is(leaf, context.DeadlineExceeded), errors.Is(leaf, pgconn.ErrConnClosed), pgconn.Timeout(leaf):
			passing = true
		}
	}
	return passing && !lasting
}

// passes reports whether an SQLSTATE is a temporary problem of the server. 57014 is a
// statement that took too long, as happens while the server is overloaded.
func passes(code string) bool {
	if len(code) < 2 {
		return false
	}
	switch code[:2] {
	case "08", "53", "57", "58":
		return true
	default:
		return false
	}
}

// leaves are the errors that were joined into one, each with its own wrappers.
func leaves(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		joined, is := e.(interface{ Unwrap() []error })
		if !is {
			continue
		}
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Remedy is the advice for an error for which Unreachable is true.
func Remedy(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		switch refused.Code {
		case "53300":
			return "the database has no connection left: raise max_connections, or lower DATABASE_MAX_CONNS of the programs"
		case "57P03":
			return "the database is starting up, stopping or recovering: wait, and look at its log if that takes long"
		}
	}
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return "cannot read the password of the database: check that the file is there, and that this program may read it"
	}
	return "cannot reach the database: check that Postgres runs, that DATABASE_URL names it, and that the network leads there"
}
