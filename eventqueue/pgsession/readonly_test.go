package pgsession_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/test/testenv"
)

// answers are errors of servers, and whether they mean that it is read-only.
var answers = map[string]struct {
	sql    string
	astray bool
}{
	"25006":                 {`DO $$ BEGIN RAISE EXCEPTION 'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006'; END $$`, true},
	"0A000 during recovery": {`DO $$ BEGIN RAISE EXCEPTION 'cannot set transaction read-write mode during recovery' USING ERRCODE = '0A000'; END $$`, true},
	"0A000":                 {`DO $$ BEGIN RAISE EXCEPTION 'not supported' USING ERRCODE = '0A000'; END $$`, false},
	"23505":                 {`DO $$ BEGIN RAISE EXCEPTION 'recovery' USING ERRCODE = '23505'; END $$`, false},
}

// TestReadOnlyConnectionsAreClosed: whatever was sent, and whoever owns the connection, it is
// closed after an answer that the server only reads, also where nothing else shows it, and after no other.
func TestReadOnlyConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			shared := testenv.Pool(t)
			p := pgsession.On(shared, "")
			batch := func() *pgx.Batch {
				b := &pgx.Batch{}
				b.Queue(answer.sql)
				return b
			}
			within := func(use func(db pgsession.DB) error) func() error {
				return func() error {
					tx, err := shared.Begin(ctx)
					if err != nil {
						return err
					}
					err = use(p.In(tx))
					_ = tx.Rollback(ctx) // the connection may be closed
					return err
				}
			}
			for how, use := range map[string]func() error{
				"statement": func() error { _, err := p.Exec(ctx, answer.sql); return err },
				"row":       func() error { return p.QueryRow(ctx, answer.sql).Scan() },
				"at any level": func() error {
					rows, err := p.QueryAtAnyLevel(ctx, answer.sql)
					if err != nil {
						return err
					}
					rows.Close()
					return rows.Err()
				},
				"batch": func() error { return p.SendBatch(ctx, batch()).Close() },
				"transaction": func() error {
					return p.InTx(ctx, func(db pgsession.DB) error { _, err := db.Exec(ctx, answer.sql); return err })
				},
				"shared pool": func() error { _, err := pgsession.DefaultSchema.On(shared).Exec(ctx, answer.sql); return err },

				"statement in the caller's": within(func(db pgsession.DB) error { _, err := db.Exec(ctx, answer.sql); return err }),
				"row in the caller's":       within(func(db pgsession.DB) error { return db.QueryRow(ctx, answer.sql).Scan() }),
				"batch in the caller's":     within(func(db pgsession.DB) error { return db.SendBatch(ctx, batch()).Close() }),
			} {
				before := pid(t, shared)
				var refused *pgconn.PgError
				if err := use(); !errors.As(err, &refused) {
					t.Fatalf("%s: error %v, want the server's", how, err)
				}
				if closed := pid(t, shared) != before; closed != answer.astray {
					t.Errorf("%s: the connection is closed: %t, want %t", how, closed, answer.astray)
				}
			}
		})
	}
}

// pid is the server's process of the only connection that is used.
func pid(t *testing.T, pool *pgxpool.Pool) (pid int) {
	t.Helper()
	if err := pool.QueryRow(testenv.Context(t), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}
