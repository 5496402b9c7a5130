package outbox

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/services"
	"eventsv2/test/testenv"
)

// TestTransactionWithAnEmitCanBePrepared: with the wake-up left out, by a function and by a trigger, and its events are pending when it commits.
func TestTransactionWithAnEmitCanBePrepared(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	server, err := services.Postgres(ctx, services.Private(), services.Setting("max_prepared_transactions", "5"))
	if err != nil || server.PID == 0 {
		testenv.Missing(t, "a server that prepares transactions: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	if _, err := migrations.Up(ctx, server.URL); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(ctx, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := &rig{t: t, pool: pool, store: pgstore.New(pool), notifier: newNotifier()}
	r.persons()
	conn := r.conn()
	for _, sql := range []string{
		`BEGIN`,
		`SET LOCAL events_v2.wake_up = off`,
		`SELECT events_emit('` + tenant + `', 'WORKER', 'greet', '1')`,
		`INSERT INTO person (tenant_id, name) VALUES ('` + tenant + `', 'x')`,
		`PREPARE TRANSACTION 'sold'`,
		`COMMIT PREPARED 'sold'`,
	} {
		r.exec(conn, sql)
	}
	if n := one[int](r, pool, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 2 {
		t.Errorf("%d events are pending, want 2", n)
	}
	done, err := r.relay(r.store, farOff).Pass(ctx)
	if err != nil || done.Pending != 2 {
		t.Errorf("the relay has published %+v, %v", done, err)
	}
}
