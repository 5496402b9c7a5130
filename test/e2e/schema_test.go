package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// applicationSQL is the schema of an application that also calls its tables event_log, rate_limits and cleanups.
const applicationSQL = `
CREATE TABLE event_log (id bigserial PRIMARY KEY, line text);
CREATE TABLE rate_limits (tenant text, per_minute int);
CREATE TABLE cleanups (id uuid);
CREATE TABLE orders (tenant_id uuid, item text)`

// besideApplication is a deployment whose queue is in a schema of its own, beside an application
// that has the default search path.
func besideApplication(t *testing.T, schema pgsession.Schema, names ...string) *rig {
	t.Helper()
	ctx := testenv.Context(t)
	r := &rig{t: t, target: newTarget(t)}
	r.environment = map[string]string{"DATABASE_URL": testenv.EmptyDatabaseURL(t), "NOTIFIER": "postgres", "PORT": "0",
		"HANDLERS_FILE": r.handlersFile(names), "LOG_LEVEL": "debug"}
	var err error
	if r.pool, err = pgxpool.New(ctx, r.environment["DATABASE_URL"]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.pool.Close)
	if _, err := r.pool.Exec(ctx, applicationSQL, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	up := r.start("eventctl", nil, "migrate", "up")
	if status := up.wait(); status == 0 || !strings.Contains(up.text(), "table event_log") || !strings.Contains(up.text(), "EVENTS_SCHEMA") {
		t.Fatalf("eventctl migrate up on the application's schema: status %d: %s", status, up.text())
	}
	r.environment["EVENTS_SCHEMA"] = schema.Name()
	r.eventctl("migrate", "up")
	return r
}

// TestQueueSharesADatabaseWithAnApplication has an application whose tables have names of the queue's emit in every
// way, and the deployed programs run it all.
func TestQueueSharesADatabaseWithAnApplication(t *testing.T) {
	t.Parallel()
	for _, schema := range []pgsession.Schema{"jobs", "Jobs of Ours"} {
		t.Run(string(schema), func(t *testing.T) {
			t.Parallel()
			r := besideApplication(t, schema, "greet", "insert_orders")
			ctx, stop := context.WithCancel(testenv.Context(t))
			defer stop()
			r.start("worker", nil).await("worker started")
			r.eventctl("cron", "set", "--canvas", canvas.String(), "--name", "tick", "--schedule", "every day")
			if _, err := r.pool.Exec(ctx, `UPDATE `+schema.Identifier()+`.cron_definitions SET starts_at = now() - interval '3 days'`); err != nil {
				t.Fatal(err) // one slot is due when cron starts, and no other while the test runs
			}
			r.start("cron", map[string]string{"RELAY_INTERVAL": "4m"}).await("cron started")
			s, err := service.Open(ctx, service.Config{Pool: r.pool, Schema: schema, Logger: testenv.Logger(t), NoRelay: true, NoCron: true, NoPruner: true,
				Notifier: service.Postgres})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			want := r.emitEverywhere(ctx, s, schema)
			served := map[string]bool{}
			for _, request := range r.target.await(t, len(want)) {
				served[request.name+" "+request.body] = true
			}
			for _, name := range want {
				if !served[name] {
					t.Errorf("%s did not come; these came: %v", name, served)
				}
			}
			r.awaitSQL("everything has ended", `SELECT count(*) = 0 FROM `+schema.Identifier()+`.events_v2 WHERE module = 'WORKER'`)
			r.awaitSQL("the slot has its event", `SELECT count(*) = 1 FROM `+schema.Identifier()+`.events_v2 e JOIN `+schema.Identifier()+`.cron_records c ON c.event_id = e.id`)
			r.operate(one[int64](r, `SELECT min(id) FROM `+schema.Identifier()+`.events_v2`))
			if workers := r.eventctlSays("worker", "list", "--json"); strings.Count(workers, `"state":"live"`) != 1 {
				t.Errorf("eventctl worker list shows not one live worker: %s", workers)
			}
			if n := one[int](r, `SELECT (SELECT count(*) FROM event_log) + (SELECT count(*) FROM rate_limits) + (SELECT count(*) FROM cleanups)`); n > 0 {
				t.Errorf("%d rows are in the tables of the application", n)
			}
		})
	}
}

// operate runs each command of the operator, with an event that no worker knows.
func (r *rig) operate(id int64) {
	canvas, handler := []string{"--canvas", canvas.String()}, []string{"--module", "CRON", "--name", "tick"}
	for _, command := range [][]string{
		{"list"}, {"show", fmt.Sprint(id)}, {"explain", fmt.Sprint(id)}, {"tree", fmt.Sprint(id)}, {"stats"}, {"stats", "--since", "1h"}, {"top"}, {"stuck"}, {"log", "list"}, {"settings", "show"}, {"cron", "list"},
		slices.Concat([]string{"pause"}, canvas, handler), {"rule", "list"}, slices.Concat([]string{"unpause"}, canvas, handler),
		slices.Concat([]string{"limit", "concurrency", "set"}, canvas, handler, []string{"--max", "3"}), {"limit", "concurrency", "list", "--canvas", canvas[1]},
		slices.Concat([]string{"limit", "rate", "set"}, canvas, handler, []string{"--per-minute", "3"}), {"limit", "rate", "list", "--canvas", canvas[1]},
		slices.Concat([]string{"retry", "--all"}, canvas, handler), {"requeue", fmt.Sprint(id)}, {"migrate", "status"},
	} {
		r.eventctl(command...)
	}
}

// emitEverywhere emits in every way there is, over connections with the default search path, and returns
// what the target has to get.
func (r *rig) emitEverywhere(ctx context.Context, s *service.Service, schema pgsession.Schema) (want []string) {
	t := r.t
	greet := func(by string) eventqueue.NewEvent {
		want = append(want, fmt.Sprintf(`greet {"by": %q}`, by))
		e := event("greet", fmt.Sprintf(`{"by": %q}`, by))
		e.OrderingKey = "one after the other"
		return e
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Emit(ctx, greet("Emit"))
	must(err)
	unique := greet("a unique key")
	unique.UniqueKey, unique.UniqueFor = "once", time.Hour // its first event may have ended before the second is emitted
	for range 2 {
		_, err = s.EmitMany(ctx, []eventqueue.NewEvent{unique})
		must(err)
	}
	must(s.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders VALUES ($1, 'InTx')`, [16]byte(canvas)); err != nil {
			return err
		}
		_, err := tx.Emit(ctx, greet("InTx"))
		return err
	}))
	must(pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		pending, err := s.EmitTx(ctx, tx, greet("EmitTx"))
		_ = pending // the relay publishes it
		return err
	}))
	want = append(want, `greet {"by": "events_emit"}`)
	_, err = r.pool.Exec(ctx, fmt.Sprintf(`SELECT %s.events_emit('%s', 'WORKER', 'greet', '{"by": "events_emit"}')`, schema.Identifier(), canvas))
	must(err)
	_, err = r.pool.Exec(ctx, `CREATE TRIGGER outbox AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION `+schema.Identifier()+`.send_to_outbox('tenant_id', 'WORKER')`)
	must(err)
	_, err = r.pool.Exec(ctx, `INSERT INTO orders VALUES ($1, 'trigger')`, [16]byte(canvas))
	must(err)
	want = append(want, fmt.Sprintf(`insert_orders {"tenant_id":%q,"item":"trigger"}`, canvas), `greet {"by": "eventctl"}`)
	r.eventctl("emit", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet", "--value", `{"by": "eventctl"}`)
	slices.Sort(want)
	return want
}
