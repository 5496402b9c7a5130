package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
	"eventsv2/test/programs"
)

func searchPathScenarios() []scenario {
	return []scenario{
		{"search-path-of-role", "whatever search_path a role has, a program works on the queue's own tables", 60 * time.Second, searchPath("role")},
		{"search-path-of-database", "so it does whatever search_path the database has", 60 * time.Second, searchPath("database")},
	}
}

// searchPath sets the path of all connections, as the operator of another application does
// who has tables in the same database.
func searchPath(of string) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		r.asRole(ctx)
		set := func(path string) { r.setPath(ctx, of, path) }
		r.exec(ctx, `CREATE SCHEMA app; CREATE SCHEMA elsewhere; CREATE TABLE app.person (canvas uuid, name text)`)
		r.exec(ctx, `CREATE TRIGGER outbox AFTER INSERT ON app.person FOR EACH ROW EXECUTE FUNCTION public.send_to_outbox('canvas', 'WORKER')`)

		// Tables of another application have names of the queue's, and come first on the path.
		hiding := []string{"events_v2", "rate_limits", "event_log", "eventsv2_schema_version"}
		for _, table := range hiding {
			r.exec(ctx, `CREATE TABLE app.`+table+` (LIKE public.`+table+`)`)
		}
		set(`app, public`)
		// All of it works, however it is emitted.
		r.cron(ctx, nil)
		r.handlers = append(r.handlers, handler("insert_person"))
		r.worker(ctx, "worker", nil)
		app := r.embed(ctx, "app", nil)
		r.target.behave("work", takes(20*time.Millisecond))
		r.emitVia(ctx, app, batch{label: "embedded", n: 50, key: func(int) string { return "key" }})
		r.emitPersons(ctx, "persons", 20)
		r.emitSQL(ctx, batch{label: "sql", n: 20})
		r.emitCtl(ctx, "ctl")
		for _, label := range []string{"embedded", "persons", "sql", "ctl"} {
			r.awaitDone(ctx, label, startLimit)
		}
		r.inOrder("embedded")

		// The path changes under programs that run, and their connections are new.
		for _, table := range []string{"events_v2", "event_log", "event_groups", "events_v2_settings", "scheduling_rules"} {
			r.exec(ctx, `CREATE TABLE elsewhere.`+table+` (LIKE public.`+table+` INCLUDING DEFAULTS)`)
		}
		r.emit(ctx, batch{label: "drained", n: 3000})
		// Three seconds at least, so that not all is over when the path changes.
		r.emit(ctx, batch{label: "lines", n: 600, canvas: groupCanvas, key: func(i int) string { return strconv.Itoa(i % 4) }})
		from := time.Now()
		set(`elsewhere`)
		if r.number(ctx, `SELECT count(*) FROM public.events_v2`) == 0 {
			r.failf("all events had ended before the path changed: the scenario shows nothing")
		}
		r.fault(oracle.LostDatabase, "", from, time.Now().Add(time.Second))
		r.emitPersons(ctx, "persons", 20)
		// A connection that the server has closed is not used; that it has must have passed the proxy.
		backoff.Sleep(ctx, 2*time.Second)
		r.emitVia(ctx, app, batch{label: "after", n: 50, every: 10 * time.Millisecond})
		for _, label := range []string{"drained", "lines", "persons", "after"} {
			r.awaitDone(ctx, label, 90*time.Second)
		}
		r.inOrder("lines")
		for _, table := range []string{"events_v2", "event_log", "event_groups", "events_v2_settings", "scheduling_rules"} {
			r.mustBeEmpty(ctx, "elsewhere."+table)
		}
		for _, table := range hiding {
			r.mustBeEmpty(ctx, "app."+table)
		}
		r.refusesSchema(ctx, "elsewhere")
	}
}

// asRole has all programs log in as a role of the scenario's own. The rig stays who it is.
func (r *rig) asRole(ctx context.Context) {
	name, password := "faults_"+strings.ReplaceAll(r.name, "-", "_"), rand.Text()
	quoted := pgx.Identifier{name}.Sanitize()
	_, err := r.stage.admin.Exec(ctx, `CREATE ROLE `+quoted+` LOGIN SUPERUSER PASSWORD '`+password+`'`)
	r.must(err)
	u, err := url.Parse(r.databaseURL)
	r.must(err)
	u.User = url.UserPassword(name, password)
	r.databaseURL = u.String()
	// The rig names what it means, whatever path the database has.
	config := r.db.Config()
	config.ConnConfig.RuntimeParams["search_path"] = "public"
	r.db.Close()
	r.db, err = pgxpool.NewWithConfig(ctx, config)
	r.must(err)
	r.OnCleanup(func(context.Context) error { r.db.Close(); return nil })
	// What the role owns, which is in the scenario's database, goes first.
	r.OnCleanup(func(ctx context.Context) error {
		_, err := r.db.Exec(ctx, `DROP OWNED BY `+quoted)
		_, dropErr := r.stage.admin.Exec(ctx, `DROP ROLE `+quoted)
		return errors.Join(err, dropErr)
	})
}

// setPath sets the search path of the programs' role or of the database, and cuts all
// connections, since those that are open go on with the path that they have.
func (r *rig) setPath(ctx context.Context, of, path string) {
	if of == "database" {
		r.setDatabase(ctx, `SET search_path = `+path)
		return
	}
	u, err := url.Parse(r.databaseURL)
	r.must(err)
	_, err = r.stage.admin.Exec(ctx, `ALTER ROLE `+pgx.Identifier{u.User.Username()}.Sanitize()+` SET search_path = `+path)
	r.must(err)
	r.setDatabase(ctx)
}

// refusesSchema starts one program of each kind on a schema without a queue, each of which has to end by
// itself, and to name the schema and where there is a queue.
func (r *rig) refusesSchema(ctx context.Context, schema string) {
	limit := []string{"limit", "rate", "set", "--canvas", canvas(9).String(), "--per-minute", "1"}
	in := map[string]string{"EVENTS_SCHEMA": schema}
	emitting := map[string]string{"EVENTS_SCHEMA": schema, "FAULTS_ROLE": "emit"}
	for _, p := range []*program{
		r.start(programs.Worker, "worker-refused", in), r.start(programs.Cron, "cron-refused", in), r.start(programEmbed, "app-refused", in),
		r.start(programEmbed, "emitter-refused", emitting),
		r.start(programs.Ctl, "limit-refused", in, limit...), r.start(programs.Ctl, "stats-refused", in, "stats"),
		r.start(programs.Ctl, "emit-refused", in, "emit", "--canvas", canvas(9).String(), "--module", "WORKER", "--name", "work", "--value", "1"),
	} {
		if !r.eventually(ctx, startLimit, func() bool { return !p.Running() }) {
			r.failf("%s runs on a schema without a queue; its last words: %s", p.Name, p.LastWords())
			p.Kill()
			continue
		}
		if text := p.LogText(); p.Status == 0 || !strings.Contains(text, "EVENTS_SCHEMA") || !strings.Contains(text, schema) || !strings.Contains(text, "public") {
			r.failf("%s ended with status %d and does not name EVENTS_SCHEMA, %s and public: %s", p.Name, p.Status, schema, p.LastWords())
		}
	}
}

// mustBeEmpty fails the scenario when something was written to a table.
func (r *rig) mustBeEmpty(ctx context.Context, table string) {
	if n := r.number(ctx, `SELECT count(*) FROM `+table); n > 0 {
		r.failf("%d rows were written to %s, which is no table of the queue", n, table)
	}
}

const insertPersonSQL = `INSERT INTO app.person (canvas, name) VALUES ($1, $2)`

const personEventSQL = `SELECT id, value FROM events_v2 WHERE id > $1 AND name = 'insert_person' AND value LIKE '%' || $2 || '%'
UNION ALL SELECT id, value FROM event_log WHERE id > $1 AND name = 'insert_person' AND value LIKE '%' || $2 || '%'`

// emitPersons inserts rows of an application's table with the trigger of the outbox, over a
// connection of the programs' role, with whatever path that has.
func (r *rig) emitPersons(ctx context.Context, label string, n int) {
	conn, err := pgx.Connect(ctx, r.databaseURL)
	r.must(err)
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // everything is committed
	for range n {
		began, name := time.Now(), rand.Text()
		_, err := conn.Exec(ctx, insertPersonSQL, [16]byte(canvas(0)), name)
		r.must(err)
		e := &entry{label: label, emitted: time.Now(), due: began}
		r.must(r.db.QueryRow(ctx, personEventSQL, 0, name).Scan(&e.id, &e.value))
		r.note(e)
	}
}

// emitCtl emits an event with eventctl.
func (r *rig) emitCtl(ctx context.Context, label string) {
	value := `{"by": "eventctl"}`
	began := time.Now()
	text, status := r.ctl(ctx, "emit", "--canvas", canvas(0).String(), "--module", "WORKER", "--name", "work", "--value", value)
	if status != 0 {
		r.fatalf("eventctl emit: %s", text)
	}
	var id eventqueue.EventID
	r.must(r.db.QueryRow(ctx, `SELECT id FROM events_v2 WHERE value = $1 UNION ALL SELECT id FROM event_log WHERE value = $1`, value).Scan(&id))
	r.note(&entry{id: id, label: label, value: value, emitted: time.Now(), due: began})
}
