package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// TestEventEmittedBySQLRuns emits in every form that the arguments allow.
func TestEventEmittedBySQLRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.startRelay(r.store, farOff)
	seen := r.startWorker("greet")
	// In one text without parameters, as psql sends it.
	r.exec(r.pool, fmt.Sprintf(`
		BEGIN;
		SELECT events_emit('%[1]s', 'WORKER', 'greet', '{ "as":  "it is" }');
		SELECT events_emit(canvas => '%[1]s', module => 'WORKER', name => 'greet', value => '[1e400, "\ud83d\ude00"]', modifier => '_');
		SELECT events_emit('%[1]s', 'WORKER', 'greet', jsonb_build_object('b', 1, 'a', ARRAY[1, 2]));
		SELECT events_emit('%[1]s', 'WORKER', 'greet', json_build_array('json', NULL), delay => '0');
		SELECT events_emit('%[1]s', 'WORKER', 'greet', to_json('text'::text)::text, delay_until => '-infinity');
		SELECT events_emit('%[1]s', 'WORKER', 'greet', value) FROM (VALUES ('1'), ('2')) AS many (value);
		COMMIT;`, tenant))
	events := seen.await(t, 7)
	var values []string
	for _, e := range events {
		values = append(values, string(e.Value))
		if e.Canvas.String() != tenant || e.Retries != 0 || !e.DelayUntil.Equal(e.EnqueuedAt) {
			t.Errorf("a handler got %+v", e)
		}
	}
	want := `{ "as":  "it is" } [1e400, "\ud83d\ude00"] {"a": [1, 2], "b": 1} ["json", null] "text" 1 2`
	if got := strings.Join(values, " "); got != want {
		t.Errorf("the handlers got %s\nwant %s", got, want)
	}
}

// TestEmitReturnsTheID in a prepared statement whose parameters have no types.
func TestEmitReturnsTheID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := one[eventqueue.EventID](r, r.pool, `SELECT events_emit($1, $2, $3, $4, $5, $6)`,
		tenant, "M", "n", `{"a": 1}`, "x", time.Hour)
	want := tenant + ` M n x {"a": 1} 01:00:00 0 0`
	if got := one[string](r, r.pool, `SELECT concat_ws(' ', canvas_id, module, name, modifier, value, delay_until - enqueued_at, retries,
		attempts, locked_at, notified_at) FROM events_v2 WHERE id = $1`, id); got != want {
		t.Errorf("the row is %s, want %s", got, want)
	}
}

// TestOneNoticePerTransaction counts what a commit, a rollback and the rollback
// of a savepoint notify.
func TestOneNoticePerTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.persons()
	listener := r.conn()
	r.exec(listener, `LISTEN events_v2_pending; LISTEN the_end`)
	emit := `SELECT events_emit('` + tenant + `', 'WORKER', 'greet', n::text::json) FROM generate_series(1, 1000) AS n;`
	for _, sql := range []string{
		`BEGIN; ` + emit + emit + ` COMMIT;`,
		`BEGIN; ` + emit + ` ROLLBACK;`,
		`BEGIN; SAVEPOINT s; ` + emit + ` ROLLBACK TO s; COMMIT;`,
		`INSERT INTO person (tenant_id, name) SELECT '` + tenant + `', 'x' FROM generate_series(1, 1000);`,
	} {
		r.exec(r.pool, sql)
	}
	r.exec(r.pool, `NOTIFY the_end`)
	var heard []string
	for len(heard) == 0 || heard[len(heard)-1] != "the_end" {
		notice, err := listener.WaitForNotification(testenv.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, notice.Channel+notice.Payload)
	}
	if got := strings.Join(heard, " "); got != "events_v2_pending events_v2_pending the_end" {
		t.Errorf("heard %s, want one notice for each of the two commits that emitted", got)
	}
	if n := one[int](r, r.pool, `SELECT count(*) FROM events_v2`); n != 3000 {
		t.Errorf("%d events are there, want 3000", n)
	}
}

// TestRefusalsNameTheMistake says what messages, hints and fields of the errors hold.
func TestRefusalsNameTheMistake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	args := func(change string) string {
		named := map[string]string{"canvas": `'` + tenant + `'`, "module": `'M'`, "name": `'n'`, "value": `'1'`}
		name, to, _ := strings.Cut(change, " => ")
		named[name] = to
		var list []string
		for name, value := range named {
			list = append(list, name+" => "+value)
		}
		return `SELECT events_emit(` + strings.Join(list, ", ") + `)`
	}
	for _, c := range []struct{ change, field, message, hint string }{
		{`canvas => NULL`, "canvas", "is missing", "Give the uuid"},
		{`canvas => '00000000-0000-0000-0000-000000000000'`, "canvas", "is missing", "Give the uuid"},
		{`module => ''`, "module", "is empty", "a modifier that is not needed is _"},
		{`name => NULL`, "name", "is NULL", "name the handler"},
		{`name => repeat('ü', 128)`, "name", "is 256 bytes long: the limit is 255", "Give a shorter one"},
		{`modifier => E'a\nb'`, "modifier", `"a\nb" holds the control character U+000A`, "Leave out"},
		{`modifier => E'\u0085'`, "modifier", `U+0085`, "Leave out"},
		{`delay => '-1 s'`, "delay", "of -00:00:01 is negative", "Use 0"},
		{`delay => '367 days'`, "delay", "of 367 days is more than the limit of 366 days", "shorter"},
		{`delay => NULL`, "delay", "is NULL", "Use 0"},
		{`delay => '12 months 6 days'`, "delay", "of 1 year 6 days is more than the limit of 366 days", "shorter"},
		{`delay => '1000000 years'`, "delay", "of 1000000 years is more than the limit of 366 days", "shorter"},
		{`delay => '1 month -32 days'`, "delay", "of 1 mon -32 days is negative", "Use 0"},
		{`ordering_key => ''`, "ordering_key", "is empty", "Leave it out"},
		{`unique_key => ''`, "unique_key", "is empty", "Leave it out"},
		{`unique_key => NULL, unique_for => '1 s'`, "unique_key", "is missing", "go with it"},
		{`ordering_key => repeat('o', 256)`, "ordering_key", "is 256 bytes long: the limit is 255", "shorter"},
		{`unique_key => E'a\nb'`, "unique_key", "holds the control character U+000A", "Leave out"},
		{`unique_for => '1 s'`, "unique_key", "is missing", "go with it"},
		{`unique_key => 'k', unique_for => '-1 s'`, "unique_for", "of -00:00:01 is negative", "Use 0"},
		{`unique_key => 'k', unique_for => NULL`, "unique_for", "is NULL", "Use 0"},
		{`unique_key => 'k', unique_for => '13 months'`, "unique_for", "of 1 year 1 mon is more than the limit of 366 days", "shorter"},
		{`unique_key => 'k', unique_mode => 'once'`, "unique_mode", `is "once"`, "until_end, until_start or replace"},
		{`unique_key => 'k', unique_mode => 'replace', unique_for => '1 s'`, "unique_for", "does not go with the mode replace", "Leave it out"},
		{`unique_key => 'k', max_wait => '1 s'`, "max_wait", "does not go with the mode until_end", "replace"},
		{`unique_key => 'k', unique_mode => 'replace', max_wait => '0'`, "max_wait", "of 00:00:00 is not positive", "no bound"},
		{`delay => '1 s', delay_until => now()`, "delay", "and delay_until are both set", "Set one"},
		{`delay_until => 'infinity'`, "delay_until", "infinity is more than the limit of 366 days away", "earlier"},
		{`attributes => '["user"]'`, "attributes", "is JSON of the type array", "object of strings"},
		{`attributes => '{"user": 7}'`, "attributes", `has JSON of the type number at "user"`, "quotes"},
		{`attributes => '{"user": null}'`, "attributes", `has JSON of the type null at "user"`, "quotes"},
		{`attributes => '{"User": "ada"}'`, "attributes", `has the key "User"`, "lower-case letters"},
		{`attributes => '{"user\n": "ada"}'`, "attributes", `has the key "user\n"`, "lower-case letters"},
		{`attributes => '{"": "ada"}'`, "attributes", `has the key ""`, "1 to 64"},
		{`attributes => jsonb_build_object('a', E'\n')`, "attributes", `has the control character U+000A at "a"`, "Leave out"},
		{`attributes => jsonb_build_object('a', repeat('x', 1025))`, "attributes", `has 1025 bytes at "a": the limit of a value is 1024`, "value of the event"},
		{`attributes => (SELECT jsonb_object_agg('k' || n, repeat('x', 1000)) FROM generate_series(1, 9) AS n)`, "attributes", "has 9018 bytes of keys and values: the limit is 8192", "value of the event"},
		{`attributes => (SELECT jsonb_object_agg('k' || n, '') FROM generate_series(1, 17) AS n)`, "attributes", "has 17 pairs: the limit is 16", "Leave some out"},
		{`parent_id => 0`, "parent_id", "is 0, the id of no event", "Leave it out"},
		{`value => NULL`, "value", "is NULL", "the text null"},
		{`value => ''`, "value", "is empty", "the text null"},
		{`value => '{"a":}'`, "value", `is not JSON: Expected JSON value, but found "}".`, "to_jsonb"},
		{`value => '"a\u0000"'`, "value", `holds \u0000 at character 3, which Postgres cannot store as text`, "base64"},
		{`value => '"\\\ud800\u0041"'`, "value", `holds \ud800 at character 4, which is half a surrogate pair`, "base64"},
		{`value => to_jsonb(repeat('x', 262143))`, "value", "is 262145 bytes long: the limit is 262144", "Keep large data elsewhere"},
		{`value => repeat('[', 10001) || repeat(']', 10001)`, "value", "is nested too deeply", "10000"},
	} {
		err := r.refused(r.pool, args(c.change))
		if err.Code != "22023" || err.ColumnName != c.field || !strings.HasPrefix(err.Message, "events_emit: "+c.field+" ") {
			t.Errorf("%s: refused with %s, field %q: %s", c.change, err.Code, err.ColumnName, err.Message)
		}
		wantText(t, c.change, err.Message, c.message)
		wantText(t, "the hint of "+c.change, err.Hint, c.hint)
	}
	if n := one[int](r, r.pool, `SELECT count(*) FROM events_v2`); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	if one[bool](r, r.pool, `SELECT is_called FROM events_id_seq`) {
		t.Error("an id was drawn for what was refused")
	}
}

// TestLimitsCanBeSet raises and lowers them as an operator would for all
// connections of a database, to what MAX_VALUE_BYTES and MAX_DELAY may be.
func TestLimitsCanBeSet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(r.pool, `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET events_v2.max_value_bytes = 1000', current_database());
		EXECUTE format('ALTER DATABASE %I SET events_v2.max_delay = ''9000h''', current_database());
	END $$`)
	conn := r.conn()
	r.exec(conn, `SELECT events_emit('`+tenant+`', 'M', 'n', to_jsonb(repeat('x', 998)), delay => '370 days')`)
	wantText(t, "the message", r.refused(conn, `SELECT events_emit($1, 'M', 'n', to_jsonb(repeat('x', 999)))`, tenant).Message, "the limit is 1000")
	wantText(t, "the message", r.refused(conn, `SELECT events_emit($1, 'M', 'n', '1', delay => '376 days')`, tenant).Message, "the limit of 9000:00:00")
	wantText(t, "the message", r.refused(conn, `SELECT events_emit($1, 'M', 'n', '1', delay_until => now() + '376 days')`, tenant).Message, "the limit of 9000:00:00")
	r.exec(conn, `SET events_v2.max_value_bytes = '1MB'; SELECT events_emit('`+tenant+`', 'M', 'n', to_jsonb(repeat('x', 1000000)))`)
	r.exec(conn, `SET events_v2.max_value_bytes = ''; SELECT events_emit('`+tenant+`', 'M', 'n', to_jsonb(repeat('x', 200000)))`)
	// An owner can take them out of the hands of callers.
	r.exec(conn, `ALTER FUNCTION events_emit_from SET events_v2.max_value_bytes = 2000; SET events_v2.max_value_bytes = '1MB'`)
	wantText(t, "the message", r.refused(conn, `SELECT events_emit($1, 'M', 'n', to_jsonb(repeat('x', 1999)))`, tenant).Message, "the limit is 2000")
}

// TestSQLAcceptsWhatGoAccepts hands the same events to both, those on either side
// of each rule and such as chance makes.
func TestSQLAcceptsWhatGoAccepts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	canvas, err := eventqueue.ParseCanvasID(tenant)
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	check := func(change func(*eventqueue.NewEvent)) {
		t.Helper()
		e := eventqueue.NewEvent{Canvas: canvas, Module: "M", Name: "n", Modifier: "_", Value: json.RawMessage(`1`)}
		change(&e)
		if emitsAsGo(t, conn, e) {
			accepted++
		}
	}
	value := func(text string) { t.Helper(); check(func(e *eventqueue.NewEvent) { e.Value = json.RawMessage(text) }) }
	for _, text := range edgesOfValues() {
		value(text)
	}
	for _, name := range []string{"", "n", " ", "\t", "\n", "\x00", "\x1f", "\x7f", "\u0080", "\u009f", "\u00a0", "a/b", `\u0000`, "'", "\xff", "\xed\xa0\x80",
		"😀", strings.Repeat("n", 255), strings.Repeat("n", 256), strings.Repeat("ü", 127), strings.Repeat("ü", 128), "\u2028", "\ufffd"} {
		check(func(e *eventqueue.NewEvent) { e.Module = name })
		check(func(e *eventqueue.NewEvent) { e.Name = name })
		check(func(e *eventqueue.NewEvent) { e.Modifier = name })
	}
	for _, delay := range []time.Duration{-1e9, -1e3, 0, 1e3, 1e9, 366 * 24 * time.Hour, 366*24*time.Hour + 1e3} {
		check(func(e *eventqueue.NewEvent) { e.Delay = delay })
		check(func(e *eventqueue.NewEvent) { e.Delay, e.DelayUntil = delay, time.Now() })
	}
	for _, days := range []int{-1000, -1, 0, 1, 365, 367} {
		check(func(e *eventqueue.NewEvent) { e.DelayUntil = time.Now().AddDate(0, 0, days) })
	}
	check(func(e *eventqueue.NewEvent) { e.Canvas = eventqueue.CanvasID{} })
	dice := rand.New(rand.NewPCG(4, 2))
	tokens := []string{`\`, `\\`, `u`, `\u`, `0000`, `d83d`, `DE00`, `"`, `""`, `[`, `]`, `{`, `}`, `:`, `,`, ` `, `1`, `0`, `-`, `.`, `e5`, `null`, `true`, `n`, "\n", "\x01", "é", "/"}
	for range 4000 {
		var b strings.Builder
		for range dice.IntN(9) {
			b.WriteString(tokens[dice.IntN(len(tokens))])
		}
		value(b.String())
		value(`"` + b.String() + `"`)
	}
	if accepted < 500 {
		t.Errorf("only %d events were accepted: the test shows little", accepted)
	}
	if n := one[int](r, r.pool, `SELECT count(*) FROM events_v2`); n != accepted {
		t.Errorf("%d rows are there, want %d", n, accepted)
	}
}

func edgesOfValues() []string {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	return []string{"", " ", "null", "nul", `""`, `"`, "1", "01", "1.", ".5", "-", "-0.0", "+1", "1e400", "1e999999", "1E+5", "1 2", "'1'", "NaN", "Infinity",
		`{"a":1,"a":2}`, `{"a":}`, `{"a":1,}`, `{a:1}`, "[1,]", "[]", "\ufeff1", "\u00a01", "\v1", " \t\r\n1 ", "/**/1", "\"\t\"", "\"\x7f\"", "\"\u2028\ufffd\"", "\"\xff\"",
		"\"\xed\xa0\x80\"", `"\x41"`, `"\u004"`, `"\u0000"`, `"\\u0000"`, `"\\\u0000"`, `{"\u0000":1}`, `"\ud800"`, `"\ud83d\ude00"`, `"\uD83D\uDE00\ude00"`, `"\ud83d\\ude00"`,
		`"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\/\b\f\n\r\t\"\\"`, `"` + strings.Repeat("x", 256<<10-2) + `"`, `"` + strings.Repeat("x", 256<<10-1) + `"`,
		`"` + strings.Repeat("ü", 128<<10-1) + `"`, `"` + strings.Repeat("ü", 128<<10) + `"`,
		nested(9999), nested(10000), nested(10001), nested(100_000), "[" + strings.Repeat("[],", 20_000) + "1]",
		`["` + strings.Repeat(`[{\"`, 20_000) + `"]`, strings.Repeat(`{"]":`, 10_000) + "1" + strings.Repeat("}", 10_000),
		strings.Repeat(`{"]":`, 10_001) + "1" + strings.Repeat("}", 10_001)}
}

// emitsAsGo fails when SQL and Go do not agree about an event, and reports whether
// it was accepted.
func emitsAsGo(t *testing.T, conn *pgx.Conn, e eventqueue.NewEvent) bool {
	t.Helper()
	ctx := testenv.Context(t)
	goErr := eventqueue.Limits{}.CheckEvents([]eventqueue.NewEvent{e}, time.Now())
	var until *time.Time
	if !e.DelayUntil.IsZero() {
		until = &e.DelayUntil
	}
	var id int64
	sqlErr := conn.QueryRow(ctx, `SELECT events_emit($1, $2, $3, $4::text, $5, $6, $7)`,
		[16]byte(e.Canvas), e.Module, e.Name, string(e.Value), e.Modifier, e.Delay, until).Scan(&id)
	if (goErr == nil) != (sqlErr == nil) {
		t.Errorf("%.80q, %.60q: Go says %v, SQL says %v", e.Handler(), e.Value, goErr, sqlErr)
		return sqlErr == nil
	}
	if goErr != nil {
		checkSameField(t, e, goErr, sqlErr)
		return false
	}
	var value []byte
	var due bool
	if err := conn.QueryRow(ctx, `SELECT value, delay_until = greatest(coalesce($2, enqueued_at + $3::interval), enqueued_at) FROM events_v2 WHERE id = $1`,
		id, until, e.Delay).Scan(&value, &due); err != nil || !bytes.Equal(value, e.Value) || !due {
		t.Errorf("%.60q came out as %.60q, due in time: %v, %v", e.Value, value, due, err)
	}
	return true
}

func checkSameField(t *testing.T, e eventqueue.NewEvent, goErr, sqlErr error) {
	t.Helper()
	var invalid *eventqueue.InvalidError
	var refusal *pgconn.PgError
	if !errors.As(goErr, &invalid) || !errors.As(sqlErr, &refusal) {
		t.Fatalf("Go says %v, SQL says %v", goErr, sqlErr)
	}
	if refusal.Code == "22021" {
		return // no UTF-8: Postgres itself refuses the parameter
	}
	field := map[string]string{"canvas": "canvas_id", "delay": "delay_until"}[refusal.ColumnName]
	if field == "" {
		field = refusal.ColumnName
	}
	if field != invalid.Field || refusal.Code != "22023" {
		t.Errorf("%+v: Go says %v, SQL says %v", e, goErr, sqlErr)
	}
}

// TestEmitFunctionsIgnoreTheSearchPath has a caller whose search path and settings are
// against it, and functions in a schema of another name.
func TestEmitFunctionsIgnoreTheSearchPath(t *testing.T) {
	t.Parallel()
	ctx, databaseURL := testenv.Context(t), testenv.EmptyDatabaseURL(t)
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	r := &rig{t: t}
	r.exec(conn, `CREATE SCHEMA "Queue, and more"; CREATE TABLE person (tenant_id uuid, name text)`)
	if _, err := migrations.In("Queue, and more").Up(ctx, databaseURL); err != nil {
		t.Fatal(err)
	}
	r.exec(conn, `
		CREATE TRIGGER send_to_outbox AFTER INSERT ON person FOR EACH ROW EXECUTE FUNCTION "Queue, and more".send_to_outbox('tenant_id', 'WORKER');
		CREATE SCHEMA decoy;
		CREATE TABLE decoy.events_v2 (LIKE "Queue, and more".events_v2);
		CREATE TEMP TABLE events_v2 (LIKE "Queue, and more".events_v2);
		CREATE TABLE sale (tenant_id uuid) PARTITION BY RANGE (tenant_id);
		CREATE TABLE sale_1 PARTITION OF sale DEFAULT;
		CREATE TRIGGER send_to_outbox AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION "Queue, and more".send_to_outbox('tenant_id', 'WORKER');
		CREATE TEMP TABLE pg_class (LIKE pg_catalog.pg_class);
		CREATE SEQUENCE decoy.events_id_seq;
		CREATE FUNCTION decoy.events_mistake_in_key(argument text, part text) RETURNS text[] LANGUAGE sql AS $$ SELECT ARRAY['a', 'decoy', ''] $$;
		CREATE FUNCTION decoy.row_to_json(public.person) RETURNS json LANGUAGE sql AS $$ SELECT '"decoy"'::json $$;
		CREATE FUNCTION decoy.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
		SET search_path = pg_temp, decoy, pg_catalog;
		SET standard_conforming_strings = off;
		SET escape_string_warning = off;
		SELECT "Queue, and more".events_emit('`+tenant+`', 'WORKER', 'greet', E'"\\\\u0000"');
		INSERT INTO public.person VALUES ('`+tenant+`', 'x');
		INSERT INTO public.sale VALUES ('`+tenant+`')`)
	if got := one[string](r, conn, `SELECT string_agg(name || ' ' || value, ' ' ORDER BY id) FROM "Queue, and more".events_v2`); got !=
		`greet "\\u0000" insert_person {"tenant_id":"`+tenant+`","name":"x"} insert_sale {"tenant_id":"`+tenant+`"}` {
		t.Errorf("the queue holds %s", got)
	}
	wantText(t, "the message", r.refused(conn, `SELECT "Queue, and more".events_emit($1, 'M', E'\t', '1')`, tenant).Message, "U+0009")
}
