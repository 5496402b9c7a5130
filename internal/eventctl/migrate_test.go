package eventctl

import (
	"strings"
	"testing"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t), env: map[string]string{"DATABASE_URL": testenv.EmptyDatabaseURL(t)}}
	c.run("migrate", "status").is(exitOK, "00001_events_v2.sql ", "")
	c.run("migrate", "up").is(exitOK, "applied 00001_events_v2.sql\napplied 00002", "")
	c.run("migrate", "up").is(exitOK, "the schema is up to date\n", "")
	c.run("migrate", "up", "--json").is(exitOK, `{"items":[]}`, "")
	var status struct {
		Items   []migrationStateDoc
		Pending int
	}
	c.run("migrate", "status", "--json").is(exitOK, "", "").into(&status)
	if status.Pending != 0 || len(status.Items) != int(migrations.Latest()) || status.Items[0].AppliedAt == nil {
		t.Errorf("%+v", status)
	}
	c.run("migrate", "down").is(exitBadInput, "", "give --yes")
	c.run("migrate", "down", "--yes").is(exitOK, "took back 0", "")
	c.run("migrate", "status", "--json").is(exitOK, `"pending":1`, "")
	c.run("stats").is(exitFailed, "", "run: eventctl migrate up")
	c.run("migrate", "down", "--yes", "--steps", "99").is(exitOK, "took back 00001", "")
	c.run("migrate", "down", "--yes").is(exitOK, "no migration is applied\n", "")
}

func TestMigrateSQLNeedsNothing(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t)}
	if r := c.run("migrate", "sql").is(exitOK, "", ""); r.out != migrations.SQL() {
		t.Errorf("the SQL is:\n%s", r.out)
	}
	var doc struct{ SQL string }
	c.run("migrate", "sql", "--json").is(exitOK, "", "").into(&doc)
	if doc.SQL != migrations.SQL() {
		t.Errorf("the SQL is:\n%s", doc.SQL)
	}
	c.run("migrate", "up").is(exitBadInput, "", "DATABASE_URL is not set")
}

func TestFailedMigrationIsReported(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t), env: map[string]string{"DATABASE_URL": testenv.DatabaseURL(t)}}
	c.run("migrate", "down", "--yes", "--steps", "99").is(exitOK, "", "")
	c.env["DATABASE_URL"] += "&options=-c%20default_transaction_read_only%3Don"
	if !strings.Contains(c.env["DATABASE_URL"], "?") {
		c.env["DATABASE_URL"] = strings.Replace(c.env["DATABASE_URL"], "&", "?", 1)
	}
	c.run("migrate", "up").is(exitFailed, "", "read-only")
}
