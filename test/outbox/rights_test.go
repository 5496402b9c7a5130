package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/test/testenv"
)

// role makes a role without any rights, until the test ends.
func (r *rig) role(conn *pgx.Conn) string {
	r.t.Helper()
	role := strings.ToLower("outbox_test_" + time.Now().Format("150405") + "_" + tenant[:4] + fmt.Sprint(rand.Uint32()))
	r.exec(conn, `CREATE ROLE `+role)
	r.t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), `RESET ROLE; DROP OWNED BY `+role+`; DROP ROLE `+role); err != nil {
			r.t.Error(err)
		}
	})
	return role
}

// TestDocumentedRightsSuffice says which a role needs, and what the owner can do to spare it them.
func TestDocumentedRightsSuffice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	role := r.role(conn)
	const emit = `SELECT events_emit('` + tenant + `', 'WORKER', 'greet', '1')`
	const insert = `INSERT INTO person (tenant_id, name) VALUES ('` + tenant + `', 'x')`
	r.persons()
	r.exec(conn, `GRANT INSERT ON person TO `+role)
	as := func(sql string) { t.Helper(); r.exec(conn, `SET ROLE `+role+`; `+sql+`; RESET ROLE`) }
	denied := func(sql string) {
		t.Helper()
		r.exec(conn, `SET ROLE `+role)
		if err := r.refused(conn, sql); err.Code != "42501" {
			t.Errorf("%s: refused with %s: %s", sql, err.Code, err.Message)
		}
		r.exec(conn, `RESET ROLE`)
	}
	denied(emit)
	denied(insert)

	// The rights of the page: to insert and no more.
	r.exec(conn, `GRANT INSERT ON events_v2 TO `+role+`; GRANT USAGE ON SEQUENCE events_id_seq TO `+role)
	as(emit)
	as(insert)
	denied(`SELECT count(*) FROM events_v2`)
	r.exec(conn, `REVOKE ALL ON events_v2, events_id_seq FROM `+role)
	denied(insert)

	// Or none at all, but through the functions.
	r.exec(conn, `ALTER FUNCTION events_emit_from SECURITY DEFINER`)
	as(emit)
	as(insert)
	denied(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ('` + tenant + `', 'M', 'n', '_', '1')`)
	r.exec(conn, `REVOKE EXECUTE ON FUNCTION events_emit_from FROM PUBLIC`)
	denied(emit)
	denied(insert)

	// Or the rows of a table and nothing else; nobody else may attach the trigger then.
	r.exec(conn, `REVOKE EXECUTE ON FUNCTION send_to_outbox FROM PUBLIC; ALTER FUNCTION send_to_outbox SECURITY DEFINER`)
	denied(emit)
	as(insert)
	denied(`CREATE TEMP TABLE own (tenant_id uuid); CREATE TRIGGER own AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION send_to_outbox('tenant_id', 'M')`)
	if n := one[int](r, conn, `SELECT count(*) FROM events_v2`); n != 5 {
		t.Errorf("%d events are there, want 5", n)
	}
}

// TestRowsOfAStrangerRunNothingAsTheOwner: row_to_json calls the casts to json
// that come with the types of a table, whoever has written them.
func TestRowsOfAStrangerRunNothingAsTheOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	role := r.role(conn)
	for _, sql := range blocks(t, "sql") {
		for line := range strings.Lines(sql) { // what the page says about the owner's rights
			if strings.HasPrefix(line, "ALTER FUNCTION") || strings.HasPrefix(line, "REVOKE EXECUTE") {
				r.exec(conn, line)
			}
		}
	}
	r.exec(conn, `CREATE SCHEMA theirs AUTHORIZATION `+role+`; GRANT EXECUTE ON FUNCTION events_emit_from TO `+role)
	r.exec(conn, `SET ROLE `+role+`;
		CREATE TYPE theirs.trick AS ENUM ('x');
		CREATE FUNCTION theirs.who(theirs.trick) RETURNS json LANGUAGE sql AS $$ SELECT to_json(current_user) $$;
		CREATE CAST (theirs.trick AS json) WITH FUNCTION theirs.who(theirs.trick);
		CREATE TABLE theirs.trap (tenant_id uuid, who theirs.trick)`)
	attach := `CREATE TRIGGER outbox AFTER INSERT ON theirs.trap FOR EACH ROW EXECUTE FUNCTION send_to_outbox('tenant_id', 'WORKER')`
	if _, err := conn.Exec(testenv.Context(t), attach); err == nil {
		r.exec(conn, `INSERT INTO theirs.trap VALUES ('`+tenant+`', 'x')`)
	}
	r.exec(conn, `RESET ROLE`)
	events := r.emitted(conn)
	r.exec(conn, `DROP SCHEMA theirs CASCADE`)
	for _, event := range events {
		if !strings.Contains(event, `"who":"`+role+`"`) {
			t.Errorf("a stranger's function ran with the rights of another: %s", event)
		}
	}
}
