package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// roleRig is a deployment in which each program logs in as a role of its own.
type roleRig struct {
	*rig
	prefix string
	direct string
}

func withRoles(of *rig) *roleRig {
	t := of.t
	t.Helper()
	r := &roleRig{rig: of}
	r.direct = r.environment["DATABASE_URL"]
	r.prefix = one[string](r.rig, `SELECT 'r' || oid || '_' FROM pg_database WHERE datname = current_database()`)
	t.Cleanup(func() { // what they may do goes with the database, they do not
		for _, role := range roles {
			for _, sql := range []string{`DROP OWNED BY %s`, `DROP ROLE %s`} {
				if _, err := r.pool.Exec(context.Background(), fmt.Sprintf(sql, r.prefix+role)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	sql, err := migrations.Roles(r.prefix)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // repeating it is harmless
		r.exec(sql)
	}
	for _, role := range roles {
		r.exec(fmt.Sprintf(`ALTER ROLE %s LOGIN PASSWORD 'pass'`, r.prefix+role))
	}
	return r
}

var roles = []string{"emitter", "sql_emitter", "worker", "cron", "operator", "reader"}

func (r *roleRig) exec(sql string) {
	r.t.Helper()
	conn, err := r.pool.Acquire(testenv.Context(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Conn().PgConn().Exec(testenv.Context(r.t), sql).ReadAll(); err != nil {
		r.t.Fatal(err)
	}
}

// as is the URL for a role.
func (r *roleRig) as(role string) string {
	r.t.Helper()
	u, err := url.Parse(r.direct)
	if err != nil {
		r.t.Fatal(err)
	}
	u.User = url.UserPassword(r.prefix+role, "pass")
	return u.String()
}

func (r *roleRig) poolAs(role string) *pgxpool.Pool {
	r.t.Helper()
	pool, err := pgstore.Open(testenv.Context(r.t), r.as(role), role, 2)
	if err != nil {
		r.t.Fatalf("%s: %v", role, err)
	}
	r.t.Cleanup(pool.Close)
	return pool
}

// TestEachProgramWorksAsItsRole: each program does its work as the role that is made for it.
func TestEachProgramWorksAsItsRole(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, func(r *rig) { withRoles(r).test() }, "greet", "flaky")
}

func (r *roleRig) test() {
	t := r.t
	ctx := testenv.Context(t)
	r.target.failOnce("flaky")
	worker := r.start("worker", map[string]string{"DATABASE_URL": r.as("worker"), "RETAIN_HISTORY": "true"})
	r.exec(fmt.Sprintf(`INSERT INTO cron_definitions (canvas_id, name, schedule, starts_at)
		VALUES ('%s', 'nightly', 'every day', now() - interval '3 days')`, canvas))
	cron := r.start("cron", map[string]string{"DATABASE_URL": r.as("cron"), "RELAY_INTERVAL": "1s", "HISTORY_COMPLETED_FOR": "720h"})
	cron.await("cron started")
	worker.await("worker started")

	// With the library, with every kind of key, and from SQL in both ways.
	emitter := r.poolAs("emitter")
	var notifier eventqueue.Publisher = r.notifier
	if r.notifier == nil {
		onPostgres, err := pgnotify.New(emitter, pgnotify.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = onPostgres.Close() }()
		notifier = onPostgres
	}
	queue := newQueue(t, pgstore.New(emitter), notifier)
	keyed := event("greet", "1")
	keyed.UniqueKey, keyed.OrderingKey = "u", "o"
	for range 2 {
		if _, err := queue.EmitMany(ctx, []eventqueue.NewEvent{event("greet", "2"), event("flaky", "3"), keyed}); err != nil {
			t.Fatal(err)
		}
	}
	sql := r.poolAs("sql_emitter")
	for _, statement := range []string{
		`SELECT events_emit($1, 'WORKER', 'greet', '4')`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, 'WORKER', 'greet', '_', '5')`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until) VALUES ($1, 'WORKER', 'greet', '_', '6', now())`,
	} {
		if _, err := sql.Exec(ctx, statement, [16]byte(canvas)); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	r.awaitSQL("all events have completed", `SELECT count(*) >= 8 AND NOT EXISTS (SELECT FROM events_v2 WHERE module = 'WORKER') FROM event_log WHERE status = 'COMPLETED'`)
	r.awaitSQL("the slot is recorded", `SELECT count(*) = 1 FROM cron_records`)

	scope := []string{"--canvas", canvas.String(), "--module", "WORKER", "--name", "greet"}
	for _, command := range [][]string{
		{"stats"}, {"list"}, {"stuck"}, append([]string{"pause"}, scope...), append([]string{"unpause"}, scope...),
		append([]string{"limit", "rate", "set", "--per-minute", "1000"}, scope...), append([]string{"limit", "rate", "remove"}, scope...),
		append([]string{"limit", "concurrency", "set", "--max", "5"}, scope...), append([]string{"limit", "concurrency", "remove"}, scope...),
		append([]string{"emit", "--value", "7"}, scope...),
		{"cron", "set", "--canvas", canvas.String(), "--name", "tick", "--schedule", "every hour"}, {"cron", "list"},
		{"log", "prune", "--status", "COMPLETED", "--older-than", "1h", "--yes"},
		{"settings", "set", "lock-timeout", "2m"}, {"settings", "finalize"},
	} {
		if status, output := r.runWords(append([]string{"eventctl"}, command...), r.as("operator")); status != 0 {
			t.Errorf("eventctl %s as the operator ended with %d:\n%s", strings.Join(command, " "), status, output)
		}
	}
	for _, command := range []string{"stats", "stats --since 1h", "stats --since 100h", "top", "list", "stuck"} {
		if status, output := r.run("eventctl "+command, r.as("reader")); status != 0 {
			t.Errorf("eventctl %s as the reader ended with %d:\n%s", command, status, output)
		}
	}
	r.awaitSQL("the operator's event has completed", `SELECT count(*) >= 9 AND NOT EXISTS (SELECT FROM events_v2 WHERE module = 'WORKER') FROM event_log`)
	for _, p := range []*program{worker, cron} {
		if status := p.terminate(); status != 0 || strings.Contains(p.text(), "permission denied") {
			t.Errorf("%s ended with %d:\n%s", p.Name, status, p.text())
		}
	}
}

// TestMissingRightIsNamedAtStart: a program whose user lacks a right that it needs
// does not start, and says which GRANT is missing; so does a worker that is embedded.
func TestMissingRightIsNamedAtStart(t *testing.T) {
	t.Parallel()
	r := withRoles(newPostgresRig(t, "greet"))
	for _, c := range []struct{ program, role, right string }{
		{"worker", "worker", "DELETE ON events_v2"},
		{"worker", "worker", "INSERT ON event_log"},
		{"worker", "worker", "UPDATE ON claim_barrier"},
		{"worker", "worker", "EXECUTE ON FUNCTION events_v2_emit_ending"},
		{"cron", "cron", "EXECUTE ON FUNCTION events_v2_lock_keys"},
		{"eventctl emit --canvas " + canvas.String() + " --module M --name N --value 1", "operator", "EXECUTE ON FUNCTION events_v2_emit_keyed"},
		{"cron", "cron", "INSERT ON cron_records"},
		{"eventctl emit --canvas " + canvas.String() + " --module M --name N --value 1", "operator", "USAGE ON SEQUENCE events_id_seq"},
	} {
		user := r.prefix + c.role
		store := pgstore.New(r.poolAs(c.role))
		works := map[string]pgstore.Work{"worker": pgstore.Working, "cron": pgstore.Relaying, "operator": pgstore.Emitting}
		if err := store.Check(testenv.Context(t), works[c.role]); err != nil {
			t.Errorf("Check of %s with all rights = %v", c.role, err)
		}
		r.exec(`REVOKE ` + c.right + ` FROM ` + user)
		status, output := r.run(c.program, r.as(c.role))
		if want := "GRANT " + c.right + " TO " + user; status != 1 || !strings.Contains(output, want) {
			t.Errorf("%s without %s ended with %d and does not say %q:\n%s", c.program, c.right, status, want, output)
		}
		err := store.Check(testenv.Context(t), works[c.role])
		var unfit *eventqueue.UnfitError
		if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "lacks "+c.right+":") {
			t.Errorf("Check without %s = %v", c.right, err)
		}
		r.exec(`GRANT ` + c.right + ` TO ` + user)
	}
	if err := pgstore.New(r.poolAs("emitter")).Check(testenv.Context(t), pgstore.Emitting); err != nil {
		t.Errorf("Check of the emitter = %v", err)
	}
}
