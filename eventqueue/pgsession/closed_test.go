//go:build linux

package pgsession_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/test/testenv"
)

// What follows a restart of Postgres does not fail for the connections that the restart has
// closed, though they were used so shortly before that the pool does not ask them whether they live.
func TestConnectionsThatTheServerClosedAreNotUsed(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	const conns = 3
	statements := map[string]func(p *pgsession.Pool) error{
		"statement": func(p *pgsession.Pool) error {
			_, err := p.Exec(ctx, `SELECT 1`)
			return err
		},
		"batch": func(p *pgsession.Pool) error {
			batch := &pgx.Batch{}
			batch.Queue(`SELECT 1`)
			return p.SendBatch(ctx, batch).Close()
		},
		"transaction": func(p *pgsession.Pool) error {
			return p.InTx(ctx, func(db pgsession.DB) error {
				_, err := db.Exec(ctx, `SELECT 1`)
				return err
			})
		},
		"copy": func(p *pgsession.Pool) error {
			_, err := p.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}}))
			return err
		},
	}
	for name, statement := range statements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operator := testenv.Pool(t)
			if _, err := operator.Exec(ctx, `CREATE TABLE copied (n int)`); err != nil {
				t.Fatal(err)
			}
			config := operator.Config()
			config.MaxConns = conns
			config.ConnConfig.RuntimeParams["application_name"] = "cut"
			config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
			shared, err := pgxpool.NewWithConfig(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			defer shared.Close()
			p := pgsession.On(shared, "")
			fill(ctx, t, shared, conns)
			var cut int
			if err := operator.QueryRow(ctx, `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
 WHERE application_name = 'cut' AND datname = current_database()`).Scan(&cut); err != nil || cut != conns {
				t.Fatalf("%d connections were cut, want %d; error %v", cut, conns, err)
			}
			if err := statement(p); err != nil {
				t.Errorf("after the server has closed all connections: %v", err)
			}
			if total := shared.Stat().TotalConns(); total != 1 {
				t.Errorf("the pool has %d connections, want 1 that is new", total)
			}
		})
	}
}

// fill has a pool open so many connections, each of which is idle then.
func fill(ctx context.Context, t *testing.T, pool *pgxpool.Pool, n int) {
	var held []*pgxpool.Conn
	for range n {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Release()
	}
}
