package service_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// strayPool is a pool of the program's own.
type strayPool struct {
	*pgxpool.Pool
	lead func() // has each of its connections lead to a server that only reads, as during a failover that has ended
}

const strayConns = 4

func newStrayPool(t *testing.T) strayPool {
	t.Helper()
	ctx := testenv.Context(t)
	operator := testenv.Pool(t)
	config := operator.Config()
	config.MaxConns = strayConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	alter := func(setting string) {
		t.Helper()
		// A name cannot be a parameter.
		if _, err := operator.Exec(ctx, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I `+setting+`', current_database()); END $$`); err != nil {
			t.Fatal(err)
		}
	}
	return strayPool{pool, func() {
		t.Helper()
		alter("SET default_transaction_read_only = on")
		pool.Reset()
		var held []*pgxpool.Conn
		for range strayConns {
			conn, err := pool.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, conn)
		}
		for _, conn := range held {
			conn.Release()
		}
		alter("RESET default_transaction_read_only")
	}}
}

// TestOwnPoolRecoversFromFailover (I19): connections of the program's own pool that were led to a server that only
// reads are not used again, whatever the queue does with them first.
func TestOwnPoolRecoversFromFailover(t *testing.T) {
	t.Parallel()
	greet := eventqueue.NewEvent{Name: "greet", Value: []byte(`1`)}
	for name, do := range map[string]func(ctx context.Context, s *service.Service) error{
		"emit": func(ctx context.Context, s *service.Service) error {
			_, err := s.Emit(ctx, greet)
			return err
		},
		"emit with a key": func(ctx context.Context, s *service.Service) error {
			e := greet
			e.UniqueKey = "k"
			_, err := s.Emit(ctx, e)
			return err
		},
		"unit of work": func(ctx context.Context, s *service.Service) error {
			return s.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
				_, err := tx.Emit(ctx, greet)
				return err
			})
		},
		"operators": func(ctx context.Context, s *service.Service) error {
			rules, err := operate.NewRules(s.Store(), s.Queue)
			if err != nil {
				return err
			}
			_, err = rules.Add(ctx, operate.PauseRule, eventqueue.Scope{Canvas: service.DefaultCanvas, Module: service.DefaultModule, Name: "greet"})
			return err
		},
		"cron": func(ctx context.Context, s *service.Service) error {
			checker, err := cronchecker.New(cronchecker.NewPostgres(s.Pool(), s.Queue), cronchecker.Config{})
			if err != nil {
				return err
			}
			_, err = checker.Check(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newStrayPool(t)
			s := open(t, service.Config{Pool: pool.Pool, Notifier: service.Memory})
			pool.lead()
			if err := do(testenv.Context(t), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOwnTransactionsRecoverFromFailover (I19): a connection of which an emit in the program's own transaction
// learns that it only reads is closed when the transaction ends.
func TestOwnTransactionsRecoverFromFailover(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	pool := newStrayPool(t)
	s := open(t, service.Config{Pool: pool.Pool, Notifier: service.Memory})
	pool.lead()
	var err error
	for range strayConns + 1 {
		err = pgx.BeginFunc(ctx, pool.Pool, func(tx pgx.Tx) error {
			_, err := s.EmitTx(ctx, tx, eventqueue.NewEvent{Name: "greet", Value: []byte(`1`)})
			return err
		})
		if err == nil {
			return
		}
	}
	t.Errorf("the transaction on the connection after the last that only reads: %v", err)
}

// TestPartsRecoverFromFailover (I13, I19): the worker goes on after each connection of the program's own pool
// has led to a server that only reads.
func TestPartsRecoverFromFailover(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	pool := newStrayPool(t)
	s := open(t, service.Config{Pool: pool.Pool, Notifier: service.Memory})
	ran := collect(t, s)
	run(t, s)
	greet := eventqueue.NewEvent{Name: "greet", Value: []byte(`1`)}
	for range 2 {
		if _, err := s.Emit(ctx, greet); err != nil {
			t.Fatal(err)
		}
		<-ran
		pool.lead()
	}
}
