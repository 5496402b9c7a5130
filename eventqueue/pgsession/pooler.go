package pgsession

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrTransactionPooling means that the connection goes through a pooler that gives
// each transaction whichever server connection is free. Functions that connect or use
// a pool return it, wrapped or unchanged.
var ErrTransactionPooling = errors.New("the database is reached through a pooler of transactions or statements, where settings, " +
	"LISTEN and prepared statements are lost between transactions: set pool_mode = session for this database in the pooler " +
	"(PgBouncer: [databases] … pool_mode=session), or name Postgres itself")

const (
	// probes is the number of attempts: a busy pooler may pass one by chance.
	probes = 3
	// probeTimeout bounds the wait for a second connection: a session pooler may have
	// none left, which does not make it a transaction pooler.
	probeTimeout = 5 * time.Second
)

const (
	markSQL     = `SELECT set_config('eventsv2.probe', '%s', false)`
	readMarkSQL = `SELECT current_setting('eventsv2.probe', true)`
	whoAmSQL    = `SELECT pg_backend_pid()`
)

// CheckPooling returns ErrTransactionPooling if conn leads to a pooler that does
// not reserve a server connection for each of its clients. On a direct connection it
// costs one round trip: the server's process is the one that was named when the
// connection was made, while a pooler names another.
//
// Behind a pooler a second connection is made. While conn is idle, the second must
// not see a setting of the first, and conn must still see it while the second is in a
// transaction. A session pooler never fails this. A transaction pooler passes only if
// other clients take and return connections at the right moments, each time.
func CheckPooling(ctx context.Context, conn *pgconn.PgConn, config *pgconn.Config) error {
	process, err := queryValue(ctx, conn, whoAmSQL)
	if err != nil {
		return fmt.Errorf("ask for the process of the connection: %w", err)
	}
	if process == strconv.FormatUint(uint64(conn.PID()), 10) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	second, err := pgconn.ConnectConfig(limited, config.Copy())
	if err != nil {
		return secondFailed(ctx, limited, err)
	}
	defer func() { _ = second.Close(context.WithoutCancel(ctx)) }()
	for range probes {
		if err := probe(limited, conn, second); err != nil {
			return secondFailed(ctx, limited, err)
		}
	}
	return nil
}

// secondFailed treats a timeout as a pooler that has no connection left.
func secondFailed(ctx, limited context.Context, err error) error {
	if limited.Err() != nil && ctx.Err() == nil && !errors.Is(err, ErrTransactionPooling) {
		return nil
	}
	return err
}

func probe(ctx context.Context, first, second *pgconn.PgConn) error {
	mark := rand.Text()
	if _, err := queryValue(ctx, first, fmt.Sprintf(markSQL, mark)); err != nil {
		return fmt.Errorf("check for a pooler: %w", err)
	}
	if _, err := queryValue(ctx, second, "BEGIN"); err != nil {
		return refusedBegin(err)
	}
	seen, err := queryValue(ctx, second, readMarkSQL)
	if err != nil {
		return refusedBegin(err)
	}
	own, err := queryValue(ctx, first, readMarkSQL)
	if err != nil {
		return fmt.Errorf("check for a pooler: %w", err)
	}
	if _, err := queryValue(ctx, second, "ROLLBACK"); err != nil {
		return refusedBegin(err)
	}
	if seen == mark || own != mark {
		return ErrTransactionPooling
	}
	return nil
}

// refusedBegin handles a refused BEGIN: a statement pooler has no transactions.
func refusedBegin(err error) error {
	const protocolViolation = "08P01"
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == protocolViolation {
		return fmt.Errorf("%w: %s", ErrTransactionPooling, refused.Message)
	}
	return fmt.Errorf("check for a pooler with a second connection: %w", err)
}

// queryValue runs a statement in the simple protocol, which every pooler supports,
// and returns the first value of its answer.
func queryValue(ctx context.Context, conn *pgconn.PgConn, sql string) (string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 || len(results[0].Rows) == 0 {
		return "", err
	}
	return string(results[0].Rows[0][0]), nil
}
