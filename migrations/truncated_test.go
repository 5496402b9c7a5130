package migrations_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// TestUpKnowsItsOwnTablesWithoutVersions: after a TRUNCATE of all tables it says what happened, and the statement in its
// error brings the versions back.
func TestUpKnowsItsOwnTablesWithoutVersions(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"", "jobs"} {
		ctx, url := testenv.Context(t), testenv.DatabaseURL(t)
		if schema != "" {
			url = testenv.DatabaseURLIn(t, schema)
		}
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		migrator := migrations.Migrator{}
		table := "public.eventsv2_schema_version"
		if schema != "" {
			migrator.Schema, table = "jobs", "jobs.eventsv2_schema_version"
		}
		if _, err := pool.Exec(ctx, `TRUNCATE `+table); err != nil {
			t.Fatal(err)
		}
		_, err = migrator.Up(ctx, url)
		var truncated *migrations.TruncatedError
		if !errors.As(err, &truncated) || truncated.Version != migrations.Latest() {
			t.Fatalf("Up = %v, want a TruncatedError of version %d", err, migrations.Latest())
		}
		_, remedy, _ := strings.Cut(err.Error(), "record the versions again: ")
		remedy, _, _ = strings.Cut(remedy, ";")
		if _, err := pool.Exec(ctx, remedy); err != nil {
			t.Fatalf("%s: %v", remedy, err)
		}
		if applied, err := migrator.Up(ctx, url); err != nil || len(applied) != 0 {
			t.Errorf("Up then applies %v, error %v", applied, err)
		}
		if err := migrator.Check(ctx, pool); err != nil {
			t.Error(err)
		}
	}
}

// TestUpAdoptsNoForeignTables if a table is missing: then the names are another application's.
func TestUpAdoptsNoForeignTables(t *testing.T) {
	t.Parallel()
	ctx, url := testenv.Context(t), testenv.DatabaseURL(t)
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `TRUNCATE eventsv2_schema_version; DROP TABLE claim_barrier`); err != nil {
		t.Fatal(err)
	}
	var foreign *migrations.ForeignError
	if _, err := migrations.Up(ctx, url); !errors.As(err, &foreign) {
		t.Errorf("Up = %v, want a ForeignError", err)
	}
}
