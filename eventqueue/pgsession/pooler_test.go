package pgsession_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// wanted are settings of a connection that plans and bounds depend on.
const wanted = "off off 1min 10s read committed"

const haveSQL = `
SELECT concat_ws(' ', current_setting('enable_seqscan'), current_setting('jit'), current_setting('statement_timeout'),
    current_setting('lock_timeout'), current_setting('default_transaction_isolation'))`

// A pooler of sessions passes no startup parameters on, and some are told to drop
// them: the settings are there all the same, on each connection.
func TestSettingsReachPostgresThroughASessionPooler(t *testing.T) {
	t.Parallel()
	direct := testenv.DatabaseURL(t)
	for name, settings := range map[string]map[string]string{
		"as it is": {"pool_mode": "session"},
		"ignoring": {"pool_mode": "session", "ignore_startup_parameters": "extra_float_digits,options,enable_seqscan,jit,statement_timeout,lock_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			url := testenv.PgBouncer(t, direct, settings)
			pool, err := pgstore.Open(ctx, url+"&options=-c%20idle_session_timeout%3D1h&search_path=public", "test", 3)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			var held []*pgxpool.Conn
			for range 3 {
				conn, err := pool.Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, conn)
				var have, idle, path string
				if err := conn.QueryRow(ctx, haveSQL).Scan(&have); err != nil || have != wanted {
					t.Errorf("the settings are %q, want %q; error %v", have, wanted, err)
				}
				if err := conn.QueryRow(ctx, `SELECT current_setting('idle_session_timeout'), current_setting('search_path')`).Scan(&idle, &path); err != nil || idle != "1h" || path != "public" {
					t.Errorf("those of the URL are %q and %q; error %v", idle, path, err)
				}
			}
			for _, conn := range held {
				conn.Release()
			}
			if err := pgstore.New(pool).Check(ctx); err != nil {
				t.Error(err)
			}
			if _, err := migrations.Up(ctx, url); err != nil {
				t.Error(err)
			}
		})
	}
}

// nothing is a unit of work without any.
func nothing(context.Context, eventqueue.DB) error { return nil }

// A pooler of transactions or statements is refused by name, whoever made the pool.
func TestTransactionPoolerIsRefused(t *testing.T) {
	t.Parallel()
	direct := testenv.DatabaseURL(t)
	for _, mode := range []string{"transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			url := testenv.PgBouncer(t, direct, map[string]string{"pool_mode": mode, "ignore_startup_parameters": "statement_timeout,jit"})
			refused := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, pgsession.ErrTransactionPooling) || !strings.Contains(err.Error(), "pool_mode") {
					t.Errorf("%s: got the error %v", what, err)
				}
			}
			pool, err := pgstore.Open(ctx, url, "test", 2)
			if err == nil {
				pool.Close()
			}
			refused("Open", err)
			_, err = migrations.Up(ctx, url)
			refused("migrate up", err)
			_, err = migrations.Status(ctx, url)
			refused("migrate status", err)

			config, err := pgxpool.ParseConfig(url)
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // as is told for such poolers
			foreign, err := pgxpool.NewWithConfig(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			defer foreign.Close()
			store := pgstore.New(foreign)
			refused("Check", store.Check(ctx))
			event := eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "M", Name: "N", Modifier: "_", Value: []byte("1")}
			_, err = store.Insert(ctx, nil, []eventqueue.NewEvent{event}, eventqueue.NotifyModeRelay)
			refused("emit", err)
			refused("a transaction", store.InTx(ctx, nothing))
			_, err = store.Claim(ctx, []eventqueue.EventID{1}, eventqueue.HandlerSet{}, 0)
			refused("claim", err)
		})
	}
}

// What the queue cannot work on is refused by name at the first use.
func TestUnfitDatabasesAreRefused(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"default_transaction_read_only=on": "read-only",
		"client_encoding=LATIN1":           "UTF8",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			pool, err := pgxpool.New(ctx, with(testenv.DatabaseURL(t), setting))
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			err = pgstore.New(pool).InTx(ctx, nothing)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got the error %v, want one with %q", err, want)
			}
		})
	}
}

// with adds a setting to a URL.
func with(url, setting string) string {
	if strings.Contains(url, "?") {
		return url + "&" + setting
	}
	return url + "?" + setting
}

// An emit with a unique key in a transaction that sees no other commits would take an
// event that has ended for one that holds the key.
func TestUniqueKeysNeedReadCommitted(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	pool := testenv.Pool(t)
	store := pgstore.New(pool)
	keyed := []eventqueue.NewEvent{{Canvas: eventqueue.CanvasID{1}, Module: "M", Name: "N", Modifier: "_", Value: []byte("1"), UniqueKey: "k"}}
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.ReadUncommitted, pgx.RepeatableRead, pgx.Serializable} {
		tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Insert(ctx, tx, keyed, eventqueue.NotifyModeRelay)
		if rollbackErr := tx.Rollback(ctx); rollbackErr != nil {
			t.Error(rollbackErr)
		}
		refuses := level == pgx.RepeatableRead || level == pgx.Serializable
		if refuses != (err != nil && strings.Contains(err.Error(), "READ COMMITTED")) {
			t.Errorf("%s: got the error %v", level, err)
		}
	}
}
