package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func connect(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// schema describes every column, index, constraint and function of the database,
// and the labels of its enums, as text.
func schema(t *testing.T, databaseURL string) []string {
	t.Helper()
	const selectSchema = `
SELECT concat_ws(' ', 'column', table_name, column_name, data_type, is_nullable, column_default, is_identity)
  FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL
SELECT concat_ws(' ', 'index', indexdef) FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT concat_ws(' ', 'function', oid::regprocedure, proconfig, md5(pg_get_functiondef(oid)))
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL
SELECT concat_ws(' ', 'enum', enumtypid::regtype, enumlabel) FROM pg_enum
UNION ALL
SELECT concat_ws(' ', 'sequence', sequencename, data_type) FROM pg_sequences WHERE schemaname = 'public'
UNION ALL
SELECT concat_ws(' ', 'options', relname, ARRAY(SELECT unnest(reloptions) ORDER BY 1)) FROM pg_class
 WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL
ORDER BY 1`
	rows, err := connect(t, databaseURL).Query(t.Context(), selectSchema)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func up(t *testing.T, databaseURL string) []migrations.Applied {
	t.Helper()
	applied, err := migrations.Up(testenv.Context(t), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// states asserts that exactly the first n migrations are applied.
func states(t *testing.T, databaseURL string, n int64) {
	t.Helper()
	list, err := migrations.Status(testenv.Context(t), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(list)) != migrations.Latest() {
		t.Fatalf("Status lists %d migrations, want %d", len(list), migrations.Latest())
	}
	for i, s := range list {
		want := int64(i+1) <= n
		if s.Version != int64(i+1) || s.Name == "" || s.Applied != want || s.AppliedAt.IsZero() == want {
			t.Errorf("with %d applied, Status says %+v", n, s)
		}
		if want && time.Since(s.AppliedAt).Abs() > time.Hour {
			t.Errorf("%s was applied at %v, which is not about now", s.Name, s.AppliedAt)
		}
	}
}

func TestUpDownUpRestoresTheSchema(t *testing.T) {
	t.Parallel()
	databaseURL := testenv.EmptyDatabaseURL(t)
	states(t, databaseURL, 0)
	if tables := schema(t, databaseURL); len(tables) != 0 {
		t.Fatalf("Status has changed an empty database:\n%s", strings.Join(tables, "\n"))
	}
	applied := up(t, databaseURL)
	if int64(len(applied)) != migrations.Latest() || applied[0].Version != 1 || applied[0].Name == "" {
		t.Fatalf("Up applied %+v", applied)
	}
	states(t, databaseURL, migrations.Latest())
	first := schema(t, databaseURL)
	if again := up(t, databaseURL); len(again) != 0 {
		t.Fatalf("a second Up applied %+v", again)
	}

	one, err := migrations.Down(testenv.Context(t), databaseURL, 1)
	if err != nil || len(one) != 1 || one[0].Version != migrations.Latest() {
		t.Fatalf("one step down: %+v, %v", one, err)
	}
	states(t, databaseURL, migrations.Latest()-1)
	rest, err := migrations.Down(testenv.Context(t), databaseURL, 1000)
	if err != nil || int64(len(rest)) != migrations.Latest()-1 {
		t.Fatalf("down to the ground: %+v, %v", rest, err)
	}
	states(t, databaseURL, 0)
	for _, line := range schema(t, databaseURL) {
		if !strings.Contains(line, "eventsv2_schema_version") {
			t.Errorf("left behind by the way down: %s", line)
		}
	}

	up(t, databaseURL)
	if second := schema(t, databaseURL); !slices.Equal(first, second) {
		t.Errorf("the schema after up, down, up differs:\n%s\nfrom:\n%s", strings.Join(second, "\n"), strings.Join(first, "\n"))
	}
}

// TestEachDownStepRevertsItsUpStep: whatever version a database is taken back to, its
// schema is the one that the migrations up to there make.
func TestEachDownStepRevertsItsUpStep(t *testing.T) {
	t.Parallel()
	down := testenv.DatabaseURL(t)
	for version := migrations.Latest() - 1; version > 0; version-- {
		applied, err := migrations.Down(testenv.Context(t), down, 1)
		if err != nil {
			t.Fatal(err)
		}
		text, _, found := strings.Cut(migrations.SQL(), "-- "+applied[0].Name+"\n")
		if !found {
			t.Fatalf("the text of all migrations does not name %s", applied[0].Name)
		}
		up := testenv.EmptyDatabaseURL(t)
		if _, err := connect(t, up).PgConn().Exec(t.Context(), text+"COMMIT;").ReadAll(); err != nil {
			t.Fatal(err)
		}
		got, want := schema(t, down), schema(t, up)
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("left by taking back %s: %s", applied[0].Name, line)
			}
		}
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("lost by taking back %s: %s", applied[0].Name, line)
			}
		}
	}
}

func TestConcurrentUpsApplyEverythingOnce(t *testing.T) {
	t.Parallel()
	databaseURL := testenv.EmptyDatabaseURL(t)
	var group errgroup.Group
	counts := make([]int, 3)
	for i := range counts {
		group.Go(func() error {
			applied, err := migrations.Up(t.Context(), databaseURL)
			counts[i] = len(applied)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if int64(total) != migrations.Latest() {
		t.Errorf("the Ups applied %v migrations, want %d in all", counts, migrations.Latest())
	}
	states(t, databaseURL, migrations.Latest())
}

// The text for administrators makes the same database as Up, and Up agrees.
func TestScriptMakesTheSchemaOfUp(t *testing.T) {
	t.Parallel()
	byText, byUp := testenv.EmptyDatabaseURL(t), testenv.DatabaseURL(t)
	// Without arguments, Exec of the low-level connection is the simple
	// protocol: many statements in one text, as psql sends a file.
	run := func() error {
		_, err := connect(t, byText).PgConn().Exec(t.Context(), migrations.SQL()).ReadAll()
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	states(t, byText, migrations.Latest())
	if applied := up(t, byText); len(applied) != 0 {
		t.Errorf("Up after the text applied %+v", applied)
	}
	got, want := schema(t, byText), schema(t, byUp)
	if !slices.Equal(got, want) {
		t.Errorf("the text makes:\n%s\nUp makes:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := run(); err == nil {
		t.Error("the text ran twice on one database without an error")
	}
	states(t, byText, migrations.Latest())
	if down, err := migrations.Down(testenv.Context(t), byText, 1000); err != nil || int64(len(down)) != migrations.Latest() {
		t.Errorf("down after the text: %+v, %v", down, err)
	}
}

func TestCheckRefusesOtherVersions(t *testing.T) {
	t.Parallel()
	databaseURL := testenv.EmptyDatabaseURL(t)
	ctx, conn := testenv.Context(t), connect(t, databaseURL)
	refuses := func(have int64, text string) {
		t.Helper()
		err := migrations.Check(ctx, conn)
		var version *migrations.VersionError
		if !errors.As(err, &version) || version.Have != have || version.Want != migrations.Latest() {
			t.Fatalf("Check says %v, want a VersionError from %d", err, have)
		}
		if !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "run: eventctl migrate up") {
			t.Errorf("the message %q does not say %q and what to do", err, text)
		}
	}
	refuses(0, "has no schema")
	up(t, databaseURL)
	if err := migrations.Check(ctx, conn); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Down(ctx, databaseURL, 1); err != nil {
		t.Fatal(err)
	}
	refuses(migrations.Latest()-1, fmt.Sprintf("is at version %d", migrations.Latest()-1))
	up(t, databaseURL)

	// A newer schema is allowed, and Status shows what this binary cannot name.
	const insert = "INSERT INTO eventsv2_schema_version (version_id, is_applied) VALUES ($1, true)"
	if _, err := conn.Exec(ctx, insert, migrations.Latest()+1); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(ctx, conn); err != nil {
		t.Errorf("Check refuses a newer schema: %v", err)
	}
	// One that says from which version on programs can work with it is refused to those that are older.
	for oldest, works := range map[int64]bool{migrations.Latest(): true, migrations.Latest() + 1: false} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(`CREATE OR REPLACE FUNCTION eventsv2_oldest_program() RETURNS bigint LANGUAGE sql IMMUTABLE RETURN %d`, oldest)); err != nil {
			t.Fatal(err)
		}
		err := migrations.Check(ctx, conn)
		var tooNew *migrations.TooNewError
		if works && err == nil {
			continue
		}
		if works || !errors.As(err, &tooNew) || *tooNew != (migrations.TooNewError{Have: oldest, Oldest: oldest, Know: migrations.Latest()}) {
			t.Fatalf("Check of a schema for programs of version %d and later says %v", oldest, err)
		}
		if !strings.Contains(err.Error(), "deploy a later version of it") {
			t.Errorf("the message does not say what to do: %v", err)
		}
	}
	list, err := migrations.Status(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if last := list[len(list)-1]; last.Version != migrations.Latest()+1 || last.Name != "" || !last.Applied {
		t.Errorf("Status ends with %+v", last)
	}
	if again := up(t, databaseURL); len(again) != 0 {
		t.Errorf("Up on a newer schema applied %+v", again)
	}
	if back, err := migrations.Down(ctx, databaseURL, 1); err == nil || len(back) != 0 || !strings.Contains(err.Error(), "use its eventctl") {
		t.Errorf("Down of what this binary does not know: %+v, %v", back, err)
	}
}

// Check must tell an old schema from a database that it could not ask.
func TestCheckReportsWhatItCouldNotFindOut(t *testing.T) {
	t.Parallel()
	conn := connect(t, testenv.DatabaseURL(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := migrations.Check(ctx, conn)
	var version *migrations.VersionError
	if !errors.Is(err, context.Canceled) || errors.As(err, &version) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	const unreadable = "postgres://me:s3cret@host:notaport/db"
	ctx := testenv.Context(t)
	for name, test := range map[string]struct {
		call func() error
		want string
	}{
		"up, empty":       {func() error { _, err := migrations.Up(ctx, ""); return err }, "migrate up: the database URL is empty: set DATABASE_URL"},
		"up, unreadable":  {func() error { _, err := migrations.Up(ctx, unreadable); return err }, "migrate up: read the database URL"},
		"down, empty":     {func() error { _, err := migrations.Down(ctx, "", 1); return err }, "migrate down: the database URL is empty"},
		"down, no steps":  {func() error { _, err := migrations.Down(ctx, unreadable, 0); return err }, "steps is 0: give how many"},
		"down, negative":  {func() error { _, err := migrations.Down(ctx, unreadable, -1); return err }, "steps is -1: give how many"},
		"status, empty":   {func() error { _, err := migrations.Status(ctx, ""); return err }, "migration status: the database URL is empty"},
		"status, nowhere": {func() error { _, err := migrations.Status(ctx, "postgres://me:s3cret@127.0.0.1:1/db"); return err }, "migration status: "},
		"up, nowhere":     {func() error { _, err := migrations.Up(ctx, "postgres://me:s3cret@127.0.0.1:1/db"); return err }, "migrate up: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.call()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the message %q shows the password", err)
			}
		})
	}
}
