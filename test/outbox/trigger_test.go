package outbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// emitted returns names and values of all events, by id.
func (r *rig) emitted(db querier) []string {
	r.t.Helper()
	return one[[]string](r, db, `SELECT coalesce(array_agg(module || '/' || name || '/' || modifier || ' ' || value ORDER BY id), '{}') FROM events_v2`)
}

// wants compares the events with what is wanted, and removes them. T stands for
// the tenant.
func (r *rig) wants(db querier, want ...string) {
	r.t.Helper()
	got := strings.ReplaceAll(strings.Join(r.emitted(db), "\n"), tenant, "T")
	if want := strings.Join(want, "\n"); got != want {
		r.t.Errorf("emitted:\n%s\nwant:\n%s", got, want)
	}
	r.exec(db, `DELETE FROM events_v2`)
}

// attach makes the trigger on a table with the given arguments, and nothing else.
func (r *rig) attach(db querier, table, when, arguments string) {
	r.t.Helper()
	r.exec(db, `CREATE OR REPLACE TRIGGER outbox `+when+` ON `+table+` FOR EACH ROW EXECUTE FUNCTION send_to_outbox(`+arguments+`)`)
}

// TestInsertedRowEmitsAnEvent goes the whole way for each operation.
func TestInsertedRowEmitsAnEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.persons()
	r.startRelay(r.store, farOff)
	seen := r.startWorker("insert_person", "update_person", "delete_person")
	r.exec(r.pool, `INSERT INTO person (tenant_id, name) VALUES ('`+tenant+`', 'john')`)
	r.exec(r.pool, `UPDATE person SET name = 'alice'`)
	r.exec(r.pool, `BEGIN; UPDATE person SET name = 'nobody'; ROLLBACK;`)
	r.exec(r.pool, `DELETE FROM person`)
	for i, want := range []string{"insert_person john", "update_person alice", "delete_person alice"} {
		e := seen.await(t, 3)[i]
		name, person, _ := strings.Cut(want, " ")
		if value := fmt.Sprintf(`{"id":1,"tenant_id":%q,"name":%q}`, tenant, person); e.Name != name || e.Canvas.String() != tenant || string(e.Value) != value {
			t.Errorf("event %d is %+v with %s, want %s with %s", i, e, e.Value, name, value)
		}
	}
}

// TestEveryWayToWriteARowEmits fires the trigger.
func TestEveryWayToWriteARowEmits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	r.persons()
	row := func(name string, id int, person string) string {
		return fmt.Sprintf(`WORKER/%s/_ {"id":%d,"tenant_id":"T","name":%q}`, name, id, person)
	}
	copied, err := conn.CopyFrom(testenv.Context(t), pgx.Identifier{"person"}, []string{"tenant_id", "name"},
		pgx.CopyFromRows([][]any{{tenant, "a"}, {tenant, "b"}}))
	if err != nil || copied != 2 {
		t.Fatalf("copied %d rows, %v", copied, err)
	}
	r.wants(conn, row("insert_person", 1, "a"), row("insert_person", 2, "b"))

	r.exec(conn, `INSERT INTO person (id, tenant_id, name) OVERRIDING SYSTEM VALUE VALUES (1, '`+tenant+`', 'c'), (7, '`+tenant+`', 'd')
		ON CONFLICT (id) DO UPDATE SET name = excluded.name`)
	r.wants(conn, row("update_person", 1, "c"), row("insert_person", 7, "d"))

	r.exec(conn, `UPDATE person SET name = name WHERE id < 3; DELETE FROM person WHERE id = 2`)
	r.wants(conn, row("update_person", 1, "c"), row("update_person", 2, "b"), row("delete_person", 2, "b"))

	// Rows that go because of others; and a trigger that fires at the commit.
	r.exec(conn, `CREATE TABLE pet (tenant_id uuid, owner bigint REFERENCES person ON DELETE CASCADE);
		INSERT INTO pet VALUES ('`+tenant+`', 7);
		CREATE CONSTRAINT TRIGGER outbox AFTER DELETE ON pet DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION send_to_outbox('tenant_id', 'WORKER');`)
	r.exec(conn, `BEGIN; DELETE FROM person WHERE id = 7; SELECT events_emit('`+tenant+`', 'WORKER', 'x', '1'); COMMIT;`)
	r.wants(conn, row("delete_person", 7, "d"), `WORKER/x/_ 1`, `WORKER/delete_pet/_ {"tenant_id":"T","owner":7}`)
}

// TestRowIsEncodedTheSameInAnySession writes odd values of many types, with the
// settings of two sessions.
func TestRowIsEncodedTheSameInAnySession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	r.exec(conn, `CREATE TABLE "Odd Things" (tenant_id uuid, gone int, bytes bytea, nan numeric, inf float8, tenth float8, big numeric, forever timestamptz,
			at timestamptz, day date, span tstzrange, took interval, as_json json, as_jsonb jsonb, list text[], nothing text,
			text text, "twice as long" text GENERATED ALWAYS AS (text || text) STORED);
		ALTER TABLE "Odd Things" DROP COLUMN gone`)
	r.attach(conn, `"Odd Things"`, "AFTER INSERT", `'tenant_id', 'WORKER'`)
	const insert = `INSERT INTO "Odd Things" VALUES ('` + tenant + `', '\x00ff', 'NaN', '-Infinity', 0.1::float8 + 0.2, 1e30, '-infinity',
		'2026-01-02 03:04:05+00', '2026-01-02', '[2026-01-02 03:04:05+00,)', '1 month 2 days 3 hours', '{"a":  1e400}', '{"b": 1, "a": 2}',
		ARRAY['x', NULL, '"'], NULL, E'ü"\\\n\u0001')`
	want := `WORKER/insert_Odd Things/_ {"tenant_id":"T","bytes":"\\x00ff","nan":"NaN","inf":"-Infinity","tenth":0.30000000000000004,` +
		`"big":1000000000000000000000000000000,"forever":"-infinity","at":"2026-01-02T03:04:05+00:00","day":"2026-01-02",` +
		`"span":"[\"2026-01-02 03:04:05+00\",)","took":"P1M2DT3H","as_json":{"a":  1e400},"as_jsonb":{"a": 2, "b": 1},` +
		`"list":["x",null,"\""],"nothing":null,"text":"ü\"\\\n\u0001","twice as long":"ü\"\\\n\u0001ü\"\\\n\u0001"}`
	r.exec(conn, insert)
	r.wants(conn, want)
	r.exec(conn, `SET timezone = 'Asia/Kathmandu'; SET datestyle = 'German'; SET intervalstyle = 'sql_standard'; SET bytea_output = 'escape';
		SET extra_float_digits = -3; SET search_path = pg_catalog`)
	r.exec(conn, strings.ReplaceAll(insert, `"Odd Things"`, `public."Odd Things"`))
	r.exec(conn, `SET search_path = public`)
	r.wants(conn, want)
}

// TestTriggerArgumentsAreApplied tries what they may be.
func TestTriggerArgumentsAreApplied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	const all = "AFTER INSERT OR UPDATE OR DELETE"
	r.exec(conn, `CREATE TABLE note (id int, "the tenant" text)`)
	const insert = `INSERT INTO note VALUES (1, upper('` + tenant + `'))`
	row := `{"id":1,"the tenant":"` + strings.ToUpper(tenant) + `"}`
	r.attach(conn, "note", all, `'the tenant', 'AUDIT', 'm'`)
	r.exec(conn, insert)
	if got := one[string](r, conn, `SELECT canvas_id::text FROM events_v2`); got != tenant {
		t.Errorf("the canvas is %s", got)
	}
	r.wants(conn, `AUDIT/insert_note/m `+row)

	r.attach(conn, "note", all, `'AAAAAAAA-0000-4000-8000-000000000001', 'AUDIT'`)
	r.exec(conn, insert)
	if got := one[string](r, conn, `SELECT canvas_id::text FROM events_v2`); got != "aaaaaaaa-0000-4000-8000-000000000001" {
		t.Errorf("the canvas is %s", got)
	}
	r.wants(conn, `AUDIT/insert_note/_ `+row)

	r.attach(conn, "note", all, `'the tenant', 'AUDIT', '_', 'change'`)
	r.exec(conn, `TRUNCATE note; `+insert+`; UPDATE note SET id = 2; DELETE FROM note`)
	second := strings.Replace(row, `"id":1`, `"id":2`, 1)
	change := func(operation, old, new string) string {
		return `AUDIT/` + strings.ToLower(operation) + `_note/_ {"operation" : "` + operation + `", "schema" : "public", "table" : "note", "old" : ` + old + `, "new" : ` + new + `}`
	}
	r.wants(conn, change("INSERT", "null", row), change("UPDATE", row, second), change("DELETE", second, "null"))

	// A condition of Postgres' own decides which rows are sent.
	r.exec(conn, `CREATE OR REPLACE TRIGGER outbox AFTER UPDATE OF id ON note FOR EACH ROW
		WHEN (OLD.id IS DISTINCT FROM NEW.id) EXECUTE FUNCTION send_to_outbox('the tenant', 'AUDIT')`)
	r.exec(conn, insert+`; UPDATE note SET id = id; UPDATE note SET id = 2`)
	r.wants(conn, `AUDIT/update_note/_ `+second)
}

// TestPartitionUsesTheNameOfItsTable in events, not in errors.
func TestPartitionUsesTheNameOfItsTable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	r.exec(conn, `CREATE SCHEMA shop; CREATE SCHEMA parts;
		CREATE TABLE shop.sale (tenant_id uuid, n int) PARTITION BY LIST (n);
		CREATE TABLE parts.sale_1 PARTITION OF shop.sale FOR VALUES IN (1);
		CREATE TABLE parts.sale_2 (n int, tenant_id uuid);
		ALTER TABLE shop.sale ATTACH PARTITION parts.sale_2 FOR VALUES IN (2)`)
	r.attach(conn, "shop.sale", "AFTER INSERT OR UPDATE OR DELETE", `'tenant_id', 'WORKER', '_', 'change'`)
	r.exec(conn, `INSERT INTO shop.sale VALUES ('`+tenant+`', 1), ('`+tenant+`', 2)`)
	value := func(row string) string {
		return `WORKER/insert_sale/_ {"operation" : "INSERT", "schema" : "shop", "table" : "sale", "old" : null, "new" : ` + row + `}`
	}
	r.wants(conn, value(`{"tenant_id":"T","n":1}`), value(`{"n":2,"tenant_id":"T"}`))
	// To Postgres a row that moves is one that goes and one that comes.
	r.exec(conn, `UPDATE shop.sale SET n = 2 WHERE n = 1`)
	r.wants(conn, `WORKER/delete_sale/_ {"operation" : "DELETE", "schema" : "shop", "table" : "sale", "old" : {"tenant_id":"T","n":1}, "new" : null}`,
		value(`{"n":2,"tenant_id":"T"}`))
	wantText(t, "the message", r.refused(conn, `INSERT INTO shop.sale VALUES (NULL, 2)`).Message, "send_to_outbox on parts.sale_2: column tenant_id is NULL")
}

// TestTriggerRefusalFailsItsStatement fails the statement that wrote the row, which is not
// there then, and says where the mistake is.
func TestTriggerRefusalFailsItsStatement(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	const columns = `'tenant_id', 'WORKER'`
	for _, c := range []struct{ make, attach, do, code, column, message string }{
		{"", columns, `INSERT INTO person VALUES (NULL, 'x')`, "22023", "tenant_id", "column tenant_id is NULL"},
		{"", columns, `INSERT INTO person VALUES ('00000000-0000-0000-0000-000000000000', 'x')`, "22023", "canvas", "canvas is missing"},
		{"", columns, `INSERT INTO person VALUES ('` + tenant + `', repeat('x', 300000))`, "22023", "value", "value is 300062 bytes long: the limit is 262144"},
		{"", `'Tenant_ID', 'WORKER'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "22023", "Tenant_ID", `there is no column "Tenant_ID"`},
		{"", `'name', 'WORKER'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "22023", "name", `column name holds "x", which is no uuid`},
		{"", `'name', 'WORKER'`, `INSERT INTO person VALUES ('` + tenant + `', '{` + tenant + `}')`, "22023", "name", "which is no uuid"},
		{"", `'tenant_id', ''`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "22023", "module", "module is empty"},
		{"", `'tenant_id'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `trigger outbox has the arguments ["tenant_id"]`},
		{"", ``, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `has the arguments []`},
		{"", columns + `, '_', 'both'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `"both"`},
		{"", columns + `, 'uniqe_key=name'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `the argument "uniqe_key=name", and the function knows no such name`},
		{"", columns + `, '_', 'row', 'Unique_Key = name'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `the argument "Unique_Key = name"`},
		{"", columns + `, 'delay=1 s', 'wait=1 s', 'change'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `the argument "wait=1 s"`},
		{"", columns + `, 'ordering-key=name'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `trigger outbox has the argument "ordering-key=name", and the function knows no such name`},
		{"", columns + `, '_', 'row', '2=b'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `the argument "2=b"`},
		{"", `'tenant_id', 'unique_key=name'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `trigger outbox has the argument "unique_key=name" in the place of the module`},
		{"", `'tenant_id', 'unique_key=name', 'WORKER'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `the argument "unique_key=name" in the place of the module`},
		{"", columns + `, 'delay=1 s', 'unique_key=name', 'delay=2 s'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `trigger outbox has the argument delay more than once`},
		{"", columns + `, 'unique_key=name', 'unique_mode=replace', 'max_wait=hello'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `trigger outbox has the argument "max_wait=hello", which is no interval`},
		{"", columns + `, 'unique_key=name', 'unique_for='`, `INSERT INTO person VALUES ('` + tenant + `', NULL)`, "39P01", "", `the argument "unique_for=", which is no interval`},
		{"", columns + `, 'delay=99999999999999 years'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `the argument "delay=99999999999999 years", which is no interval`},
		{"", columns + `, 'unique_key=name', 'unique_mode=sometimes'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "22023", "unique_mode", `unique_mode is "sometimes"`},
		{"", columns + `, '_', 'row', 'x'`, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", `"x"`},
		{`ALTER TABLE person ADD blob json DEFAULT '{"a": "\u0000"}'`, columns, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "22023", "value",
			`value holds \u0000 at character`},
		{`ALTER TABLE person ADD blob json DEFAULT '{"a": "\ud800"}'`, columns, `INSERT INTO person VALUES ('` + tenant + `', 'x')`, "22023", "value",
			`value holds \ud800 at character`},
		{`ALTER TABLE person ADD blob json DEFAULT '{"a": "\u0000"}'`, `'` + tenant + `', 'WORKER'`, `INSERT INTO person VALUES (NULL, 'x')`, "22023", "value",
			`value holds \u0000 at character`},
		{`CREATE TRIGGER early BEFORE UPDATE ON person FOR EACH ROW EXECUTE FUNCTION send_to_outbox(` + columns + `); INSERT INTO person VALUES ('` + tenant + `', 'x')`, columns,
			`UPDATE person SET name = 'y'`, "39P01", "", "trigger early is BEFORE UPDATE FOR EACH ROW: it must be AFTER"},
		{`CREATE TRIGGER whole AFTER TRUNCATE ON person FOR EACH STATEMENT EXECUTE FUNCTION send_to_outbox(` + columns + `)`, columns,
			`TRUNCATE person`, "39P01", "", "trigger whole is AFTER TRUNCATE FOR EACH STATEMENT: it must be AFTER"},
		{`CREATE TRIGGER statement AFTER INSERT ON person FOR EACH STATEMENT EXECUTE FUNCTION send_to_outbox(` + columns + `)`, columns,
			`INSERT INTO person VALUES ('` + tenant + `', 'x')`, "39P01", "", "trigger statement is AFTER INSERT FOR EACH STATEMENT: it must be AFTER"},
	} {
		r.exec(conn, `BEGIN; CREATE TABLE person (tenant_id uuid, name text); `+c.make)
		r.attach(conn, "person", "AFTER INSERT", c.attach)
		r.exec(conn, `SAVEPOINT s`)
		before := one[string](r, conn, `SELECT coalesce(string_agg(name, ' '), '') FROM person`)
		err := r.refused(conn, c.do)
		if err.Code != c.code || err.ColumnName != c.column || err.Hint == "" {
			t.Errorf("%s, %s: refused with %+v", c.attach, c.do, err)
		}
		wantText(t, "the message", err.Message, "send_to_outbox on public.person: ", c.message)
		r.exec(conn, `ROLLBACK TO s`)
		if after := one[string](r, conn, `SELECT coalesce(string_agg(name, ' '), '') FROM person`); after != before {
			t.Errorf("%s: the table holds %q after %q", c.do, after, before)
		}
		r.exec(conn, `ROLLBACK`)
	}
	r.wants(conn)
}

// TestQueueTablesTriggerNoEvents refuses the trigger on the tables that each event
// writes.
func TestQueueTablesTriggerNoEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	for table, write := range map[string]string{
		"events_v2":               `SELECT events_emit('` + tenant + `', 'M', 'n', '1')`,
		"event_log":               `INSERT INTO event_log SELECT 1, '` + tenant + `', 'M', 'n', '_', '1', 'FAILED', 0, 0, 'x', now()`,
		"events_v2_notifications": `INSERT INTO events_v2_notifications VALUES (1, '` + tenant + `')`,
	} {
		r.attach(conn, table, "AFTER INSERT OR UPDATE OR DELETE", `'canvas_id', 'WORKER'`)
		err := r.refused(conn, write)
		if err.Code != "39P01" || err.Hint != "DROP TRIGGER outbox ON public."+table+";" {
			t.Errorf("%s: refused with %+v", table, err)
		}
		wantText(t, "the message", err.Message, "send_to_outbox on public."+table+": this table belongs to the queue")
		r.exec(conn, err.Hint)
		r.exec(conn, write)
	}
}

// TestDownMigrationSparesTriggers of tables that still send rows.
func TestDownMigrationSparesTriggers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, databaseURL := testenv.Context(t), r.pool.Config().ConnString()
	r.persons()
	if _, err := migrations.Down(ctx, databaseURL, 1000); err == nil {
		t.Error("the functions are gone, and a table has the trigger")
	}
	r.exec(r.pool, `INSERT INTO person (tenant_id, name) VALUES ('`+tenant+`', 'john')`)
	r.exec(r.pool, `DROP TRIGGER send_to_outbox ON person`)
	if _, err := migrations.Down(ctx, databaseURL, 1000); err != nil {
		t.Error(err)
	}
}
