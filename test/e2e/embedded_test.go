package e2e_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// onPool opens a program that has a pool of its own.
func onPool(t *testing.T, pool *pgxpool.Pool) (*service.Service, error) {
	t.Helper()
	return service.Open(testenv.Context(t), service.Config{Pool: pool, Logger: testenv.Logger(t)})
}

// pools are the ways to a pool of a program's own.
var pools = map[string]func(ctx context.Context, url string) (*pgxpool.Pool, error){
	"pool of Open": func(ctx context.Context, url string) (*pgxpool.Pool, error) {
		return pgstore.Open(ctx, url, "embedded", 10)
	},
	"pool of pgx": pgxpool.New,
	"pool without prepared statements": func(ctx context.Context, url string) (*pgxpool.Pool, error) {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			return nil, err
		}
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		return pgxpool.NewWithConfig(ctx, config)
	},
}

// TestEmbeddingProgramWorksBehindASessionPooler emits in every form of the library and
// runs it all, whoever made the pool.
func TestEmbeddingProgramWorksBehindASessionPooler(t *testing.T) {
	t.Parallel()
	for name, open := range pools {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(testenv.Context(t))
			defer stop()
			url := testenv.PgBouncer(t, testenv.DatabaseURL(t), map[string]string{"pool_mode": "session", "default_pool_size": "40"})
			pool, err := open(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			p, err := onPool(t, pool)
			if err != nil {
				t.Fatal(err)
			}
			ran := make(chan eventqueue.EventID, 100)
			if err := p.Register(eventqueue.HandlerKey{Name: "greet"}, eventqueue.HandlerFunc(
				func(_ context.Context, run *eventqueue.Run) error { ran <- run.ID; return nil }), eventqueue.Policy{}); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			want := map[eventqueue.EventID]bool{}
			emitted := func(ids []eventqueue.EventID, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range ids {
					want[id] = true
				}
			}
			keyed := event("greet", "1")
			keyed.UniqueKey, keyed.OrderingKey = "u", "o"
			emitted(p.EmitMany(ctx, []eventqueue.NewEvent{event("greet", "2"), keyed}))
			err = p.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
				emitted(tx.Emit(ctx, event("greet", "3")))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			pending, err := p.EmitTx(ctx, tx, event("greet", "4")) // which the relay notifies
			if err != nil {
				t.Fatal(err)
			}
			emitted(pending.IDs, tx.Commit(ctx))
			for len(want) > 0 {
				select {
				case id := <-ran:
					delete(want, id)
				case <-ctx.Done():
					t.Fatalf("%d events have not run", len(want))
				}
			}
			stop()
			if err := errors.Join(<-ended, p.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEmbeddingProgramRefusesATransactionPooler is refused by name, with what to set,
// whatever it does first; nothing is emitted.
func TestEmbeddingProgramRefusesATransactionPooler(t *testing.T) {
	t.Parallel()
	direct := testenv.DatabaseURL(t)
	for _, mode := range []string{"transaction", "statement"} {
		for name, open := range pools {
			t.Run(mode+", "+name, func(t *testing.T) {
				t.Parallel()
				ctx := testenv.Context(t)
				url := testenv.PgBouncer(t, direct, map[string]string{"pool_mode": mode, "ignore_startup_parameters": "statement_timeout"})
				refused := func(what string, err error) {
					t.Helper()
					if !errors.Is(err, pgsession.ErrTransactionPooling) || !strings.Contains(err.Error(), "pool_mode = session") {
						t.Errorf("%s: got the error %v", what, err)
					}
				}
				pool, err := open(ctx, url)
				if err != nil {
					refused("the pool", err)
					return
				}
				defer pool.Close()
				_, err = onPool(t, pool)
				refused("the program", err)
				queue, err := eventqueue.New(pgstore.New(pool), memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
				if err != nil {
					t.Fatal(err)
				}
				_, err = queue.Emit(ctx, event("greet", "1"))
				refused("an emit", err)
				err = queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
					_, err := tx.Emit(ctx, event("greet", "2"))
					return err
				})
				refused("a unit of work", err)
			})
		}
	}
}

// TestPoolThatSendsNoListsIsRefused by name: no statement of the queue would get through.
func TestPoolThatSendsNoListsIsRefused(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.DefaultQueryExecMode = mode
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = onPool(t, pool)
		pool.Close()
		if err == nil || !strings.Contains(err.Error(), "cache_describe") {
			t.Errorf("in the mode %s: got the error %v", mode, err)
		}
	}
	if _, err := pgstore.NewPool("postgres://u@127.0.0.1/d?default_query_exec_mode=exec", "test", 1); err == nil || !strings.Contains(err.Error(), "cache_describe") {
		t.Errorf("in the URL: got the error %v", err)
	}
}
