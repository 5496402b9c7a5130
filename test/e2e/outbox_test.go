package e2e_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/test/testenv"
)

// TestOutboxEventsArePosted emits from plain SQL and from a trigger, and has the deployed
// cron and worker post the events; once with Pub/Sub, and once with nothing but
// Postgres. The relay's own timer is minutes away.
func TestOutboxEventsArePosted(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, (*rig).testOutbox, "greet", "insert_person", "update_person", "delete_person")
}

func (r *rig) testOutbox() {
	t := r.t
	r.start("worker", nil).await("worker started")
	r.start("cron", map[string]string{"RELAY_INTERVAL": "4m"}).await("cron started")
	r.awaitSQL("the relay listens", `SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE datname = current_database() AND query LIKE '%pg_listening' || '_channels%' AND state = 'idle')`)
	for _, sql := range []string{`
		CREATE TABLE person (tenant_id uuid, name text);
		CREATE TRIGGER send_to_outbox AFTER INSERT OR UPDATE OR DELETE ON person
		FOR EACH ROW EXECUTE FUNCTION send_to_outbox('tenant_id', 'WORKER')`,
		// Text without parameters, as psql sends it.
		fmt.Sprintf(`
		BEGIN;
		INSERT INTO person VALUES ('%[1]s', 'nobody');
		SELECT events_emit('%[1]s', 'WORKER', 'greet', '"nobody"');
		ROLLBACK;
		BEGIN;
		INSERT INTO person VALUES ('%[1]s', 'john');
		SELECT events_emit('%[1]s', 'WORKER', 'greet', '{ "name":  "john" }');
		COMMIT;
		UPDATE person SET name = 'alice';
		DELETE FROM person;`, canvas)} {
		if _, err := r.pool.Exec(testenv.Context(t), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, request := range r.target.await(t, 4) {
		got = append(got, request.name+" "+request.body)
		if source := request.header.Get("Ce-Source"); source != "/canvases/"+canvas.String() {
			t.Errorf("the source of %s is %s", request.name, source)
		}
	}
	row := func(name string) string { return fmt.Sprintf(`{"tenant_id":%q,"name":%q}`, canvas, name) }
	want := []string{"delete_person " + row("alice"), `greet { "name":  "john" }`, "insert_person " + row("john"), "update_person " + row("alice")}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the target got\n%q\nwant\n%q", got, want)
	}
	r.awaitSQL("everything has ended", `SELECT count(*) = 0 FROM events_v2`)
}
