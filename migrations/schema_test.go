package migrations_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// objects returns the tables, types and functions of a schema.
func objects(t *testing.T, conn *pgx.Conn, schema string) (names []string) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `
SELECT ARRAY(
    SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident($1))
    UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace(quote_ident($1))
    UNION ALL SELECT typname FROM pg_type WHERE typnamespace = to_regnamespace(quote_ident($1)) AND typtype = 'e'
    ORDER BY 1)`, schema).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

const oddSchema = "Jobs of Ours"

// However a queue is migrated, everything is in its schema, and the same as in public.
func TestQueueMayHaveItsOwnSchema(t *testing.T) {
	t.Parallel()
	want := objects(t, connect(t, testenv.DatabaseURL(t)), "public")
	m := migrations.In(oddSchema)
	for name, migrate := range map[string]func(t *testing.T, url string) error{
		"by URL": func(t *testing.T, url string) error {
			_, err := m.Up(testenv.Context(t), url)
			return err
		},
		"on a pool": func(t *testing.T, url string) error {
			pool, err := pgxpool.New(testenv.Context(t), url)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			_, err = m.UpPool(testenv.Context(t), pool)
			return err
		},
		"in a transaction": func(t *testing.T, url string) error {
			return pgx.BeginFunc(testenv.Context(t), connect(t, url), func(tx pgx.Tx) error {
				applied, err := m.UpTx(testenv.Context(t), tx)
				if int64(applied) != migrations.Latest() {
					t.Errorf("%d migrations were applied", applied)
				}
				if again, err := m.UpTx(testenv.Context(t), tx); err != nil || again != 0 {
					t.Errorf("a second time: %d, %v", again, err)
				}
				if _, err := tx.Exec(testenv.Context(t), `CREATE TABLE mine (id bigint)`); err != nil { // on the path of before
					t.Error(err)
				}
				return err
			})
		},
		"by psql, in two parts": func(t *testing.T, url string) error {
			for _, part := range [][2]int64{{1, 1}, {2, migrations.Latest()}} {
				script, err := m.SQL(part[0], part[1])
				if err != nil {
					t.Fatal(err)
				}
				if _, err := connect(t, url).PgConn().Exec(testenv.Context(t), script).ReadAll(); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testenv.EmptyDatabaseURL(t)
			conn := connect(t, url)
			if err := migrate(t, url); err != nil {
				t.Fatal(err)
			}
			if got := objects(t, conn, oddSchema); !slices.Equal(got, want) {
				t.Errorf("the schema has\n%q\nwant\n%q", got, want)
			}
			if got := objects(t, conn, "public"); len(got) > 0 && !slices.Equal(got, []string{"mine"}) {
				t.Errorf("public has %q", got)
			}
			if err := m.Check(t.Context(), conn); err != nil {
				t.Error(err)
			}
			if again, err := m.Up(testenv.Context(t), url); err != nil || len(again) > 0 {
				t.Errorf("another Up: %v, %v", again, err)
			}
			if _, err := m.Down(testenv.Context(t), url, 1000); err != nil {
				t.Fatal(err)
			}
			for _, name := range objects(t, conn, oddSchema) {
				if !strings.HasPrefix(name, "eventsv2_schema_version") {
					t.Errorf("left behind by the way down: %s", name)
				}
			}
		})
	}
}

// Objects of another application are named, and nothing is written.
func TestForeignObjectsAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	for name, foreign := range map[string]struct{ sql, want string }{
		"tables":     {`CREATE TABLE event_log (id bigint); CREATE TABLE rate_limits (id bigint); CREATE TABLE cleanups (id bigint)`, "cleanups,event_log,rate_limits"},
		"a view":     {`CREATE VIEW event_log AS SELECT 1`, "event_log"},
		"a type":     {`CREATE TYPE scheduling_rule_type AS (a int)`, "scheduling_rule_type"},
		"an index":   {`CREATE TABLE mine (id bigint); CREATE INDEX events_v2_pending ON mine (id)`, "events_v2_pending"},
		"a function": {`CREATE FUNCTION events_emit(a int) RETURNS int LANGUAGE sql RETURN 1`, "events_emit"},
		"a sequence": {`CREATE SEQUENCE events_id_seq`, "events_id_seq"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testenv.EmptyDatabaseURL(t)
			conn := connect(t, url)
			if _, err := conn.Exec(t.Context(), foreign.sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			before := objects(t, conn, "public")
			_, err := migrations.Up(testenv.Context(t), url)
			inTx := pgx.BeginFunc(testenv.Context(t), conn, func(tx pgx.Tx) error {
				_, err := migrations.In("").UpTx(testenv.Context(t), tx)
				return err
			})
			for how, err := range map[string]error{"Up": err, "UpTx": inTx} {
				var refused *migrations.ForeignError
				if !errors.As(err, &refused) || refused.Schema != "public" || !strings.Contains(err.Error(), "EVENTS_SCHEMA") {
					t.Fatalf("%s = %v", how, err)
				}
				var names []string
				for _, object := range refused.Objects {
					_, name, _ := strings.Cut(object, " ")
					names = append(names, name)
				}
				if got := strings.Join(names, ","); got != foreign.want {
					t.Errorf("%s names %q, want %q", how, got, foreign.want)
				}
			}
			if after := objects(t, conn, "public"); !slices.Equal(after, before) {
				t.Errorf("the database had %q, and has %q", before, after)
			}
			if _, err := migrations.In("jobs").Up(testenv.Context(t), url); err != nil {
				t.Errorf("in a schema of its own: %v", err)
			}
		})
	}
}

// What a later migration would create is in the way of an upgrade as well.
func TestForeignObjectsBlockAnUpgrade(t *testing.T) {
	t.Parallel()
	url := testenv.DatabaseURL(t)
	if _, err := migrations.Down(testenv.Context(t), url, int(migrations.Latest())-1); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, url).Exec(t.Context(), `CREATE TABLE mine (id bigint); CREATE INDEX scheduling_rules_narrow ON mine (id)`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	_, err := migrations.Up(testenv.Context(t), url)
	var refused *migrations.ForeignError
	if !errors.As(err, &refused) || !slices.Equal(refused.Objects, []string{"index scheduling_rules_narrow"}) {
		t.Errorf("Up = %v", err)
	}
	states(t, url, 1)
}

// A script from a later version refuses a schema that is not of the version before.
func TestScriptIsForOneVersion(t *testing.T) {
	t.Parallel()
	url := testenv.DatabaseURL(t)
	script, err := migrations.In("").SQL(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, url).PgConn().Exec(t.Context(), script).ReadAll(); err == nil || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("the script on the newest schema: %v", err)
	}
	for _, wrong := range [][2]int64{{0, 1}, {2, 1}, {1, migrations.Latest() + 1}} {
		if _, err := migrations.In("").SQL(wrong[0], wrong[1]); err == nil {
			t.Errorf("versions %v are not refused", wrong)
		}
	}
	if _, err := migrations.In("pg_x").SQL(1, 1); err == nil {
		t.Error("a schema of Postgres is not refused")
	}
}

// SQL functions notify the channels to which the programs listen.
func TestSQLAndProgramUseTheSameChannels(t *testing.T) {
	t.Parallel()
	url := testenv.DatabaseURL(t)
	for _, schema := range []pgsession.Schema{"public", oddSchema} {
		if _, err := migrations.In(schema).Up(testenv.Context(t), url); err != nil {
			t.Fatal(err)
		}
		var channel string
		if err := connect(t, url).QueryRow(t.Context(), schema.SQL(`SELECT events_v2_channel('x')`)).Scan(&channel); err != nil {
			t.Fatal(err)
		}
		want := schema.Name() + ".x"
		if schema == "public" {
			want = "x"
		}
		if channel != want || schema.Channel("x") != want {
			t.Errorf("schema %s: the channel x is %q in SQL and %q in Go, want %q", schema, channel, schema.Channel("x"), want)
		}
	}
}
