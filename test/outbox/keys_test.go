package outbox

import (
	"fmt"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// TestUpdatesOfARowRunInOrder: 60 updates of each of two rows, through a trigger that has their id as ordering key.
func TestUpdatesOfARowRunInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(r.pool, `CREATE TABLE person (id bigint, tenant_id uuid, step int);
		INSERT INTO person VALUES (1, '`+tenant+`', 0), (2, '`+tenant+`', 0)`)
	r.attach(r.pool, "person", "AFTER UPDATE", `'tenant_id', 'WORKER', 'ordering_key=id'`)
	r.startRelay(r.store, farOff)
	seen := r.startWorker("update_person")
	for range 60 {
		r.exec(r.pool, `UPDATE person SET step = step + 1`)
	}
	next := map[int]int{}
	for _, e := range seen.await(t, 120) {
		var id, step int
		if _, err := fmt.Sscanf(string(e.Value), `{"id":%d,"tenant_id":"`+tenant+`","step":%d}`, &id, &step); err != nil {
			t.Fatal(err)
		}
		if next[id]++; step != next[id] {
			t.Fatalf("step %d of row %d ran where %d was next", step, id, next[id])
		}
	}
}

// TestTriggerNeverFailsForTheTextOfAKey, whatever a column holds: long texts and control characters become a hash, NULL and
// nothing are no key. Events for different handlers have different keys.
func TestTriggerNeverFailsForTheTextOfAKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(r.pool, `CREATE TABLE note (tenant_id uuid, topic text)`)
	r.attach(r.pool, "note", "AFTER INSERT OR UPDATE", `'tenant_id', 'WORKER', '_', 'row', 'unique_key=topic', 'unique_for=1 hour', 'ordering_key=topic'`)
	r.exec(r.pool, `CREATE TRIGGER beside AFTER INSERT ON note FOR EACH ROW EXECUTE FUNCTION send_to_outbox('tenant_id', 'AUDIT', 'unique_key=topic', 'ordering_key=topic')`)
	keys := func(sql string) string {
		t.Helper()
		r.exec(r.pool, sql)
		return one[string](r, r.pool, `WITH gone AS (DELETE FROM events_v2 RETURNING id, unique_key, unique_seconds, ordering_key)
			SELECT coalesce(string_agg(concat_ws(' ', unique_key, unique_seconds, ordering_key), ', ' ORDER BY id), '') FROM gone`)
	}
	insert := func(topic string) string {
		return `INSERT INTO note SELECT '` + tenant + `', ` + topic + ` FROM generate_series(1, 2)`
	}
	for topic, want := range map[string]string{
		`'a'`:  `AUDIT/insert_note/_ a 0 a, WORKER/insert_note/_ a 3600 a`,
		`NULL`: `0 , 0 , 0 , 0 `,
		`''`:   `0 , 0 , 0 , 0 `,
	} {
		if got := keys(insert(topic)); got != want {
			t.Errorf("the topic %s: %q, want %q", topic, got, want)
		}
	}
	if got, want := keys(`UPDATE note SET topic = topic WHERE topic = 'a'`), `WORKER/update_note/_ a 3600 a`; got != want {
		t.Errorf("an update: %q, want %q", got, want)
	}
	for _, topic := range []string{`repeat('ü', 128)`, `repeat('x', 240)`, `E'a\nb'`, `E'\u0085'`} {
		got := keys(insert(topic))
		if n := strings.Count(got, ", "); n != 1 || !strings.Contains(got, "sha256 ") {
			t.Errorf("the topic %s: %q", topic, got)
		}
	}
	r.exec(r.pool, `ALTER TABLE note RENAME topic TO subject`)
	err := r.refused(r.pool, `INSERT INTO note VALUES ('`+tenant+`', 'a')`)
	wantText(t, "the message", err.Message, "there is no column topic")
}

// TestSQLAndGoShareKeys: an emit in SQL finds the key of one in Go, and the other way round.
func TestSQLAndGoShareKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	canvas, err := eventqueue.ParseCanvasID(tenant)
	if err != nil {
		t.Fatal(err)
	}
	inGo := func(key string) (eventqueue.EventID, bool) {
		t.Helper()
		inserted, err := r.store.Insert(testenv.Context(t), nil, []eventqueue.NewEvent{{Canvas: canvas, Module: "WORKER", Name: "greet", Modifier: "_",
			Value: []byte(`1`), UniqueKey: key}}, eventqueue.NotifyModeRelay)
		if err != nil {
			t.Fatal(err)
		}
		return inserted[0].ID, inserted[0].Repeat
	}
	inSQL := func(key string) eventqueue.EventID {
		t.Helper()
		return one[eventqueue.EventID](r, r.pool, `SELECT events_emit($1, 'WORKER', 'greet', '1', unique_key => $2)`, tenant, key)
	}
	first, _ := inGo("a")
	second := inSQL("b")
	if got := inSQL("a"); got != first {
		t.Errorf("SQL made event %s of the key of event %s", got, first)
	}
	if got, repeat := inGo("b"); got != second || !repeat {
		t.Errorf("Go made event %s of the key of event %s", got, second)
	}
	if n := one[int](r, r.pool, `SELECT count(*) FROM events_v2`); n != 2 {
		t.Errorf("%d events are there, want 2", n)
	}
}

// TestKeysNeedOneRight more than an emit without a key, and no right on the tables of keys.
func TestKeysNeedOneRight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	role := r.role(conn)
	r.exec(conn, `GRANT INSERT ON events_v2 TO `+role+`; GRANT USAGE ON SEQUENCE events_id_seq TO `+role)
	const emit = `SELECT events_emit('` + tenant + `', 'WORKER', 'greet', '1', unique_key => 'k', ordering_key => 'o')`
	r.exec(conn, `SET ROLE `+role)
	if err := r.refused(conn, emit); err.Code != "42501" {
		t.Errorf("without the right: %+v", err)
	}
	r.exec(conn, `RESET ROLE; GRANT EXECUTE ON FUNCTION events_v2_emit_keyed TO `+role+`; SET ROLE `+role+`; `+emit+`; `+emit+`; RESET ROLE`)
	if n := one[int](r, conn, `SELECT count(*) FROM events_v2 WHERE unique_key = 'k' AND ordering_key = 'o'`); n != 1 {
		t.Errorf("%d events of one key", n)
	}
	for _, sql := range []string{
		`UPDATE unique_keys SET event_id = 7`, `UPDATE events_v2 SET notified_at = now()`, `SELECT key FROM unique_keys`,
		// It cannot say that the event which has the key ends.
		`SELECT events_v2_emit_ending('` + tenant + `', 'WORKER', 'greet', '_', '1', '0', NULL, NULL, NULL, '', 'k', 0, 'until_end', NULL, NULL, NULL, 1)`,
	} {
		r.exec(conn, `SET ROLE `+role)
		if err := r.refused(conn, sql); err.Code != "42501" {
			t.Errorf("%s: %+v", sql, err)
		}
		r.exec(conn, `RESET ROLE`)
	}
}

// TestMigrationKeepsTheRightToKeys of whoever emits and whoever ends events, and takes from emitters that of saying which event ends.
func TestMigrationKeepsTheRightToKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	emitter, worker := r.role(conn), r.role(conn)
	rights := func() string {
		t.Helper()
		return one[string](r, conn, `SELECT string_agg(concat_ws(' ', proname, has_function_privilege('`+emitter+`', oid, 'EXECUTE'),
				has_function_privilege('`+worker+`', oid, 'EXECUTE'), has_function_privilege('public', oid, 'EXECUTE')), ', ' ORDER BY proname)
			FROM pg_proc WHERE proname LIKE 'events\_v2\_emit\_%'`)
	}
	version := one[int](r, conn, `SELECT max(version_id) FROM eventsv2_schema_version`)
	ctx, databaseURL := testenv.Context(t), r.pool.Config().ConnString()
	down := func() {
		t.Helper()
		if _, err := migrations.Down(ctx, databaseURL, version-14); err != nil {
			t.Fatal(err)
		}
	}
	down()
	r.exec(conn, `GRANT DELETE ON events_v2 TO `+worker+`; GRANT EXECUTE ON FUNCTION events_v2_emit_keyed TO `+emitter+`, `+worker)
	for range 2 {
		if got, want := rights(), "events_v2_emit_keyed t t f"; got != want {
			t.Errorf("before: %s, want %s", got, want)
		}
		if _, err := migrations.Up(ctx, databaseURL); err != nil {
			t.Fatal(err)
		}
		if got, want := rights(), "events_v2_emit_ending f t f, events_v2_emit_keyed t t f"; got != want {
			t.Errorf("after: %s, want %s", got, want)
		}
		down()
	}
}

// TestMigrationKeepsSettingsOfEmitFunctions: rights and SECURITY DEFINER of a function that gets new arguments, and loses them again.
func TestMigrationKeepsSettingsOfEmitFunctions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	role := r.role(conn)
	settings := func() string {
		t.Helper()
		return one[string](r, conn, `SELECT string_agg(concat_ws(' ', proname, prosecdef, has_function_privilege('`+role+`', oid, 'EXECUTE'),
				has_function_privilege('public', oid, 'EXECUTE'), array_to_string(proconfig, ' ')), ', ' ORDER BY oid::regprocedure::text) FROM pg_proc
			WHERE proname IN ('events_emit', 'events_emit_from', 'send_to_outbox')`)
	}
	r.exec(conn, `ALTER FUNCTION events_emit_from SECURITY DEFINER SET events_v2.max_delay = '1 h'; REVOKE EXECUTE ON FUNCTION events_emit_from FROM PUBLIC;
		GRANT EXECUTE ON FUNCTION events_emit_from TO `+role+`; ALTER FUNCTION send_to_outbox SET events_v2.max_delay = '1 h'`)
	before := settings()
	version := one[int](r, conn, `SELECT max(version_id) FROM eventsv2_schema_version`)
	ctx, databaseURL := testenv.Context(t), r.pool.Config().ConnString()
	if _, err := migrations.Down(ctx, databaseURL, version-10); err != nil {
		t.Fatal(err)
	}
	if got := settings(); got != before {
		t.Errorf("taken back: %s, want %s", got, before)
	}
	if _, err := migrations.Up(ctx, databaseURL); err != nil {
		t.Fatal(err)
	}
	if got := settings(); got != before {
		t.Errorf("migrated again: %s, want %s", got, before)
	}
	r.exec(conn, `SELECT events_emit('`+tenant+`', 'WORKER', 'greet', '1', unique_key => 'k')`)
}
