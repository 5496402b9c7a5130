package outbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// origin is the parent and the attributes of the only event, which it deletes.
func (r *rig) origin() string {
	r.t.Helper()
	return one[string](r, r.pool, `WITH gone AS (DELETE FROM events_v2 RETURNING parent_id, attributes) SELECT concat_ws(' ', parent_id, attributes) FROM gone`)
}

// TestSQLSetsAttributes: as arguments, and from the setting, whose pairs the argument replaces; the
// setting also reaches triggers, and ends with its transaction.
func TestSQLSetsAttributes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.persons()
	emit := func(more string) string {
		return `SELECT events_emit('` + tenant + `', 'WORKER', 'greet', '1'` + more + `);`
	}
	person := `INSERT INTO person (tenant_id, name) VALUES ('` + tenant + `', 'x');`
	set := func(text string) string { return `SET LOCAL events_v2.attributes = '` + text + `';` }
	conn := r.conn()
	for _, c := range []struct{ sql, want string }{
		{emit(``), ``},
		{emit(`, attributes => '{}'`), ``},
		{emit(`, attributes => '{"user": "ada"}', parent_id => 17`), `17 {"user": "ada"}`},
		{emit(`, parent_id => 17`), `17`},
		{set(`{"user": "ada", "zone": "a"}`) + emit(``), `{"user": "ada", "zone": "a"}`},
		{set(`{"user": "ada", "zone": "a"}`) + emit(`, attributes => '{"zone": "b"}'`), `{"user": "ada", "zone": "b"}`},
		{set(`{"user": "ada"}`) + person, `{"user": "ada"}`},
		{set(``) + person, ``},
		{set(`{}`) + person, ``},
		{person, ``},
	} {
		r.exec(conn, `BEGIN;`+c.sql+`COMMIT`)
		if got := r.origin(); got != c.want {
			t.Errorf("%s made an event with %q, want %q", c.sql, got, c.want)
		}
	}
	for text, want := range map[string]string{
		`{"user":`: "the setting events_v2.attributes is not JSON", `{"a": "\u0000"}`: "the setting events_v2.attributes is not JSON",
		`7`: "attributes is JSON of the type number", `{"User": "x"}`: `attributes has the key "User"`,
	} {
		r.exec(conn, `BEGIN;`+set(text))
		err := r.refused(conn, person)
		if err.Code != "22023" || err.ColumnName != "attributes" || !strings.HasPrefix(err.Message, "send_to_outbox on public.person: "+want) {
			t.Errorf("with the setting %s: %s, %q: %s", text, err.Code, err.ColumnName, err.Message)
		}
		r.exec(conn, `ROLLBACK`)
	}
}

// TestSQLAcceptsTheAttributesThatGoAccepts, on either side of each limit.
func TestSQLAcceptsTheAttributesThatGoAccepts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	canvas, err := eventqueue.ParseCanvasID(tenant)
	if err != nil {
		t.Fatal(err)
	}
	many := func(n, bytes int) map[string]string {
		of := map[string]string{}
		for i := range n {
			of[fmt.Sprintf("k%02d", i)] = strings.Repeat("x", bytes)
		}
		return of
	}
	cases := []map[string]string{many(0, 0), many(16, 0), many(17, 0), many(16, 509), many(16, 510), many(8, 1021), many(8, 1022), many(9, 1021)}
	for _, key := range []string{"", "a", "0", "-", "_", ".", "A", "ä", "ſ", " ", "a b", "a\n", "\n", strings.Repeat("k", 64), strings.Repeat("k", 65), "a:b", "^", "`", "{"} {
		cases = append(cases, map[string]string{key: "x"})
	}
	for _, value := range []string{"", " ", "\t", "\x1f", "\x7f", "\u0080", "\u009f", "\u00a0", "\u2028", "😀", `"\`, strings.Repeat("x", 1024), strings.Repeat("x", 1025),
		strings.Repeat("ü", 512), strings.Repeat("ü", 513)} {
		cases = append(cases, map[string]string{"k": value})
	}
	for _, of := range cases {
		e := eventqueue.NewEvent{Canvas: canvas, Module: "M", Name: "n", Modifier: "_", Value: []byte(`1`), Attributes: of}
		goErr := eventqueue.Limits{}.CheckEvents([]eventqueue.NewEvent{e}, time.Now())
		text, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		var same bool
		_, sqlErr := r.pool.Exec(testenv.Context(t), `SELECT events_emit($1, 'M', 'n', '1', attributes => $2::text::jsonb)`, tenant, string(text))
		if (goErr == nil) != (sqlErr == nil) {
			t.Errorf("%.80s: Go reports %v, SQL %v", text, goErr, sqlErr)
		}
		if sqlErr == nil && len(of) > 0 {
			if same = one[bool](r, r.pool, `SELECT attributes = $1::text::jsonb FROM events_v2 ORDER BY id DESC LIMIT 1`, string(text)); !same {
				t.Errorf("%.80s came out as something else", text)
			}
		}
	}
}
