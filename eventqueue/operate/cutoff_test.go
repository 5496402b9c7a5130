package operate_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestCutOffPieceIsCounted interrupts an operation whose piece has changed events and cannot report them. However the
// operation goes on, by another program, or resumed after a stop, its counts include that piece.
func TestCutOffPieceIsCounted(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(b *bench, op operate.Operation) error{
		"another program takes over": func(*bench, operate.Operation) error { return nil },
		"stopped and resumed": func(b *bench, op operate.Operation) error {
			_, stopErr := b.operations.Stop(b.ctx, ada, op.ID)
			_, resumeErr := b.operations.Resume(b.ctx, ada, op.ID)
			return errors.Join(stopErr, resumeErr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.emit(600)
			op := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
			b.Exec(`CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$`)
			b.Exec(`CREATE TRIGGER stall BEFORE UPDATE OF changed ON bulk_operations FOR EACH ROW WHEN (NEW.changed > OLD.changed) EXECUTE FUNCTION stall()`)
			ctx, interrupt := context.WithCancel(b.ctx)
			ended := make(chan error, 1)
			go func() {
				_, err := b.operations.Work(ctx)
				ended <- err
			}()
			testenv.Eventually(t, "the report of the piece stalls", func() bool {
				return rig.One[bool](b.Rig, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep')`)
			})
			interrupt()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			cut := b.get(op)
			if changed := rig.One[int](b.Rig, `SELECT count(*) FROM event_log`); changed == 0 || changed == 600 || cut.Changed != 0 {
				t.Fatalf("%d events are changed and %d counted, want a piece that is not counted", changed, cut.Changed)
			}
			b.Exec(`DROP TRIGGER stall ON bulk_operations`)
			if err := then(b, op); err != nil {
				t.Fatal(err)
			}
			if got := b.work(op); got.State != operate.OperationDone || got.Changed != 600 {
				t.Errorf("%+v, want 600 changed", got)
			}
		})
	}
}

// TestAwaitOutlastsAFailover has the database unreachable in the middle of a replay.
func TestAwaitOutlastsAFailover(t *testing.T) {
	t.Parallel()
	var refusals atomic.Int32 // of connections, while it is positive
	b, proxy := newBenchBehindProxy(t, func() error {
		if refusals.Add(-1) >= 0 {
			return errors.New("no route to host")
		}
		return nil
	})
	b.end(30, "COMPLETED")
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbReplay, Filter: filter(), Rate: 20}))
	var failed bool
	op, err := b.operations.Await(b.ctx, op.ID, func(operate.Operation) {
		if !failed {
			failed = true
			refusals.Store(6)
			proxy.Break()
		}
	}, nil)
	if err != nil || op.State != operate.OperationDone || op.Changed != 30 || !failed || refusals.Load() >= 0 {
		t.Errorf("%+v, %v, %d refusals left; want 30 replayed after the failover", op, err, refusals.Load())
	}
}

// newBenchBehindProxy returns a bench whose connections pass a proxy. An error of dialing refuses a connection.
func newBenchBehindProxy(t *testing.T, dialing func() error) (*bench, *testenv.TCPProxy) {
	t.Helper()
	config := testenv.Pool(t).Config()
	server := config.ConnConfig
	proxy := testenv.Proxy(t, net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port))))
	server.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		if err := dialing(); err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", proxy.Address)
	}
	pool, err := pgxpool.NewWithConfig(testenv.Context(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := rig.NewOn(t, pool)
	return &bench{r, t, testenv.Context(t), operations(r)}, proxy
}
