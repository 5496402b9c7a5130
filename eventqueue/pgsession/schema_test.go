package pgsession_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// objectsSQL are the names in the schema of the queue that a statement may mean.
const objectsSQL = `
SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S', 'v', 'm', 'p', 'c')
UNION
SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd')
UNION
SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
ORDER BY 1`

// Whatever migrations make can be named in a statement.
func TestSchemaObjectsMatchTheMigrations(t *testing.T) {
	t.Parallel()
	var want []string
	if err := testenv.Pool(t).QueryRow(t.Context(), `SELECT ARRAY(`+objectsSQL+`)`).Scan(&want); err != nil {
		t.Fatal(err)
	}
	got := pgsession.Objects()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("objects are\n%q\nthe migrations make\n%q", got, want)
	}
}

// Only names of the queue's objects get the schema, and only where they are names.
func TestStatementsGetTheirSchema(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		`SELECT id FROM events_v2 e JOIN event_log USING (id)`:        `SELECT id FROM "j".events_v2 e JOIN "j".event_log USING (id)`,
		`INSERT INTO event_log AS l VALUES ($1::event_log_status)`:    `INSERT INTO "j".event_log AS l VALUES ($1::"j".event_log_status)`,
		`SELECT nextval('events_id_seq'), events_emit($1)`:            `SELECT nextval('"j".events_id_seq'), "j".events_emit($1)`,
		`SELECT 'of events_v2', e.event_log, "rate_limits", E'it\'s'`: `SELECT 'of events_v2', e.event_log, "rate_limits", E'it\'s'`,
		`SELECT 1 -- events_v2` + "\nFROM events_v2 /* events_v2 */":  `SELECT 1 -- events_v2` + "\nFROM \"j\".events_v2 /* events_v2 */",
		`DO $x$ events_v2 $$ $x$; SELECT $1, $2, events_v2_`:          `DO $x$ events_v2 $$ $x$; SELECT $1, $2, events_v2_`,
		`SELECT 'it''s', events_v2.id FROM "j".events_v2`:             `SELECT 'it''s', "j".events_v2.id FROM "j".events_v2`,
		`it's not closed events_v2`:                                   `it's not closed events_v2`,
		`$`:                                                           `$`,
		``:                                                            ``,
	} {
		if got := pgsession.Schema("j").SQL(statement); got != want {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", statement, got, want)
		}
	}
	if got := pgsession.Schema("").SQL(`TABLE events_v2`); got != `TABLE "public".events_v2` {
		t.Error(got)
	}
}

// FuzzSchema has any text keep everything but the schema, and a second pass change nothing.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{`SELECT 'a' FROM events_v2 -- x`, `$$ $a$ 'events_id_seq' "`, `/* ' */ events_v2.events_v2`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, statement string) {
		once := pgsession.Schema("j").SQL(statement)
		if strings.ReplaceAll(once, `"j".`, ``) != strings.ReplaceAll(statement, `"j".`, ``) {
			t.Errorf("%q became %q", statement, once)
		}
	})
}

func TestInvalidSchemaNameIsRefused(t *testing.T) {
	t.Parallel()
	for name, want := range map[pgsession.Schema]string{
		"": "", "jobs": "", "Jobs of Ours": "", "ünïcode": "",
		"pg_jobs": "Postgres' own", "information_schema": "Postgres' own", `a"b`: "quotes", "a'b": "quotes", "a\x00b": "quotes",
		pgsession.Schema(strings.Repeat("a", 41)): "at most 40",
	} {
		err := name.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("schema %q: %v, want %q", string(name), err, want)
		}
	}
}

// A schema without a queue is refused, with the schemas that have one.
func TestSchemaWithoutAQueueIsNamed(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	for schema, want := range map[pgsession.Schema]string{"public": "", "elsewhere": "no schema elsewhere", "pg_temp_3": "no schema", "empty": "no table events_v2"} {
		if schema == "empty" {
			if _, err := pool.Exec(ctx, `CREATE SCHEMA empty`); err != nil {
				t.Fatal(err)
			}
		}
		err := pgstore.NewIn(schema, pool).Check(ctx)
		var unfit *eventqueue.UnfitError
		if want == "" && err != nil || want != "" && (!errors.As(err, &unfit) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "EVENTS_SCHEMA") || !strings.Contains(err.Error(), "in public")) {
			t.Errorf("the check of schema %s = %v, want %q", schema, err, want)
		}
	}
}

// The search path leads nothing elsewhere: neither tables of the same names, nor a path that ends
// nowhere, nor temporary tables.
func TestSearchPathDoesNotMatter(t *testing.T) {
	t.Parallel()
	ctx, url := testenv.Context(t), testenv.DatabaseURL(t)
	admin, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.Exec(ctx, `CREATE SCHEMA app; CREATE TABLE app.events_v2 (id bigint)`); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"app", "app,public", "nowhere", "pg_temp,public", ""} {
		pool, err := pgxpool.New(ctx, with(url, "search_path="+path))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		store := pgstore.New(pool)
		if err := store.Check(ctx, pgstore.Emitting, pgstore.Working, pgstore.Relaying); err != nil {
			t.Errorf("search_path=%s: %v", path, err)
		}
		event := eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "M", Name: "N", Modifier: "_", Value: []byte("1")}
		if _, err := store.Insert(ctx, nil, []eventqueue.NewEvent{event}, eventqueue.NotifyModeRelay); err != nil {
			t.Errorf("search_path=%s: %v", path, err)
		}
		if err := store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
			_, err := store.Insert(ctx, db, []eventqueue.NewEvent{event}, eventqueue.NotifyModeRelay)
			return err
		}); err != nil {
			t.Errorf("search_path=%s, in a transaction: %v", path, err)
		}
		if err := migrations.Check(ctx, pool); err != nil {
			t.Errorf("search_path=%s: %v", path, err)
		}
	}
}
