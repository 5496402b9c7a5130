package migrations_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

var update = flag.Bool("update", false, "write names.txt anew")

// watchSQL notes after each statement, also after those within functions and DO blocks, which objects the schema public has.
const watchSQL = `
CREATE SCHEMA watch;
CREATE TABLE watch.seen (object text PRIMARY KEY);
CREATE FUNCTION watch.look() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $watch$
BEGIN
    INSERT INTO watch.seen SELECT kind || ' ' || name FROM watch.objects ON CONFLICT DO NOTHING;
END
$watch$;
CREATE VIEW watch.objects AS %s;
CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION watch.look();`

// names.txt has every name that a migration brings, for as short as it may be, since a migrated database is asked for them.
func TestListedNamesMatchTheDatabase(t *testing.T) {
	t.Parallel()
	url := testenv.EmptyDatabaseURL(t)
	conn := connect(t, url)
	run := func(sql string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(testenv.Context(t), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	list := func(sql string) (objects []string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT ARRAY(`+sql+` ORDER BY 1)`).Scan(&objects); err != nil {
			t.Fatal(err)
		}
		return objects
	}
	run(fmt.Sprintf(watchSQL, strings.NewReplacer("$1", "'public'", "$2", "NULL").Replace(migrations.ObjectsSQL)))
	var b strings.Builder
	states := make([][]string, migrations.Latest()+1)
	note := func(version int64, before, seen, after []string) {
		for _, object := range seen {
			if !slices.Contains(before, object) {
				fmt.Fprintf(&b, "%d + %s\n", version, object)
			}
		}
		for _, object := range seen {
			if !slices.Contains(after, object) {
				fmt.Fprintf(&b, "%d - %s\n", version, object)
			}
		}
	}
	const look = `SELECT kind || ' ' || name FROM watch.objects`
	for version := int64(1); version <= migrations.Latest(); version++ {
		run(`TRUNCATE watch.seen; INSERT INTO watch.seen ` + look)
		script, err := migrations.In("").SQL(version, version)
		if err != nil {
			t.Fatal(err)
		}
		run(script)
		states[version] = list(look)
		if version == 1 { // the table of the versions is there before
			states[0] = list(`SELECT object FROM watch.seen WHERE object ~ '^[a-z]+ eventsv2_schema_version'`)
			note(0, nil, states[0], states[0])
		}
		note(version, states[version-1], list(`SELECT object FROM watch.seen`), states[version])
	}
	run(`DROP EVENT TRIGGER watch`)
	for version := migrations.Latest() - 1; version >= 0; version-- {
		if _, err := migrations.Down(testenv.Context(t), url, 1); err != nil {
			t.Fatal(err)
		}
		if got := list(look); !slices.Equal(got, states[version]) {
			t.Errorf("taken back to version %d the schema has\n%q\nwant\n%q", version, got, states[version])
		}
	}
	if *update {
		if err := os.WriteFile("names.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if b.String() != migrations.Names() {
		t.Errorf("names.txt is not what the migrations make: go test ./migrations -run Names -update writes it; it should be\n%s", b.String())
	}
}

// Every name is refused, wherever the migrations have it from, and under what another application has it. The version that is
// there before makes no difference.
func TestNamesOfEachOriginAreRefused(t *testing.T) {
	t.Parallel()
	const serial = `CREATE TABLE rate_limits (id serial PRIMARY KEY); ALTER TABLE rate_limits RENAME TO mine`
	for name, foreign := range map[string]struct {
		version int64 // of the queue that is there
		sql     string
		want    []string
	}{
		"a table":                            {0, `CREATE TABLE event_groups (id int)`, []string{"table event_groups"}},
		"tables and their keys":              {0, `CREATE TABLE concurrency_limits (id int PRIMARY KEY); CREATE VIEW unique_expiries AS SELECT 1; CREATE SEQUENCE event_group_locks`, []string{"index concurrency_limits_pkey", "sequence event_group_locks", "table concurrency_limits", "view unique_expiries"}},
		"a key":                              {0, serial, []string{"index rate_limits_pkey"}},
		"a sequence of a column":             {0, `CREATE TABLE cleanups (id serial); ALTER TABLE cleanups RENAME TO mine`, []string{"sequence cleanups_id_seq"}},
		"a sequence of an identity":          {0, `CREATE SEQUENCE events_v2_notifications_place_seq`, []string{"sequence events_v2_notifications_place_seq"}},
		"an index":                           {0, `CREATE TABLE mine (id int); CREATE INDEX events_v2_delayed ON mine (id)`, []string{"index events_v2_delayed"}},
		"a function with other arguments":    {0, `CREATE FUNCTION events_v2_advance(mine int) RETURNS int LANGUAGE sql RETURN 1`, []string{"function events_v2_advance"}},
		"a procedure":                        {0, `CREATE PROCEDURE events_v2_group_key() LANGUAGE sql AS ''`, []string{"function events_v2_group_key"}},
		"an index of an upgrade":             {1, `CREATE TABLE mine (id int); CREATE INDEX scheduling_rules_narrow ON mine (id)`, []string{"index scheduling_rules_narrow"}},
		"an enum with the name of a table":   {0, `CREATE TYPE rate_limits AS ENUM ('a')`, []string{"type rate_limits"}},
		"a domain with the name of a type":   {0, `CREATE DOMAIN event_log_status AS text`, []string{"type event_log_status"}},
		"the table of the versions' key":     {0, `CREATE TABLE mine (id int CONSTRAINT eventsv2_schema_version_pkey PRIMARY KEY)`, []string{"index eventsv2_schema_version_pkey"}},
		"a function beside one that stays":   {1, `CREATE FUNCTION events_depth(mine int) RETURNS int LANGUAGE sql RETURN 1`, nil},
		"functions with the names of tables": {0, `CREATE FUNCTION event_log() RETURNS int LANGUAGE sql RETURN 1; CREATE TABLE events_emit (id int)`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testenv.EmptyDatabaseURL(t)
			conn := connect(t, url)
			run := func(sql string) {
				if _, err := conn.PgConn().Exec(testenv.Context(t), sql).ReadAll(); err != nil {
					t.Fatal(err)
				}
			}
			if foreign.version > 0 {
				script, err := migrations.In("").SQL(1, foreign.version)
				if err != nil {
					t.Fatal(err)
				}
				run(script)
			}
			run(foreign.sql)
			before := objects(t, conn, "public")
			applied, err := migrations.Up(testenv.Context(t), url)
			if foreign.want == nil {
				if err != nil {
					t.Errorf("Up = %v", err)
				}
				return
			}
			var refused *migrations.ForeignError
			if !errors.As(err, &refused) || !slices.Equal(slices.Sorted(slices.Values(refused.Objects)), foreign.want) || len(applied) > 0 {
				t.Errorf("Up = %d migrations, %v, want %q refused", len(applied), err, foreign.want)
			}
			if after := objects(t, conn, "public"); !slices.Equal(after, before) {
				t.Errorf("the database had %q, and has %q", before, after)
			}
		})
	}
}

// A schema may have the marks of a body of SQL in its name.
func TestScriptForASchemaWithDollars(t *testing.T) {
	t.Parallel()
	url := testenv.EmptyDatabaseURL(t)
	conn := connect(t, url)
	for _, schema := range []migrations.Migrator{migrations.In("a$$b"), migrations.In("$do$ $version$")} {
		for _, part := range [][2]int64{{1, 1}, {2, migrations.Latest()}} {
			script, err := schema.SQL(part[0], part[1])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(testenv.Context(t), script, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatalf("schema %s, versions %v: %v", schema.Schema, part, err)
			}
		}
		if err := schema.Check(t.Context(), conn); err != nil {
			t.Error(err)
		}
	}
}
