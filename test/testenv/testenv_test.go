package testenv

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"eventsv2/migrations"
	"eventsv2/test/services"
)

func TestMain(m *testing.M) { Main(m) }

func databaseExists(t *testing.T, name string) bool {
	t.Helper()
	var exists bool
	err := requirePostgres(t).admin.QueryRow(Context(t),
		"SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil {
		t.Fatal(err)
	}
	return exists
}

func TestDatabasesAreMigratedFreshAndDropped(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("use", func(t *testing.T) {
		ctx, pool := Context(t), Pool(t)
		if err := migrations.Check(ctx, pool); err != nil {
			t.Fatal(err)
		}
		var rows int
		if err := pool.QueryRow(ctx, "SELECT current_database(), (SELECT count(*) FROM events_v2)").Scan(&name, &rows); err != nil || rows != 0 {
			t.Fatalf("%d events in a fresh database, %v", rows, err)
		}
		// A connection that nobody closes must not keep the database.
		config := pool.Config().ConnConfig.Copy()
		if _, err := pgx.ConnectConfig(ctx, config); err != nil {
			t.Fatal(err)
		}
		if !databaseExists(t, name) {
			t.Fatal("the database that is in use does not exist")
		}
	})
	if databaseExists(t, name) {
		t.Errorf("database %s has outlived its test", name)
	}
}

func TestEmptyDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	states, err := migrations.Status(Context(t), EmptyDatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if s.Applied {
			t.Errorf("%s is applied", s.Name)
		}
	}
}

func TestParallelDatabasesDiffer(t *testing.T) {
	t.Parallel()
	urls := make([]string, 8)
	t.Run("all", func(t *testing.T) {
		for i := range urls {
			t.Run("one", func(t *testing.T) {
				t.Parallel()
				urls[i] = DatabaseURL(t)
			})
		}
	})
	seen := map[string]bool{}
	for _, u := range urls {
		if seen[u] {
			t.Errorf("%s was given twice", u)
		}
		seen[u] = true
	}
}

// A template of another name goes through everything that the real one does.
func TestTemplateIsMadeOnceAndRepaired(t *testing.T) {
	t.Parallel()
	p, ctx := requirePostgres(t), Context(t)
	name := "eventsv2_test_template_" + strings.ToLower(t.Name())
	t.Cleanup(func() {
		if err := dropDatabase(context.Background(), p.admin, name); err != nil {
			t.Error(err)
		}
	})
	// What a process leaves that dies while it makes the template.
	if err := createDatabase(ctx, p.admin, name, emptyTemplate); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	for range 3 {
		group.Go(func() error { return ensureTemplate(ctx, p.admin, p.service.URL, name) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var made uint32
	const selectOID = "SELECT oid FROM pg_database WHERE datname = $1 AND NOT datallowconn"
	if err := p.admin.QueryRow(ctx, selectOID, name).Scan(&made); err != nil {
		t.Fatalf("the template is not complete: %v", err)
	}
	if err := ensureTemplate(ctx, p.admin, p.service.URL, name); err != nil {
		t.Fatal(err)
	}
	var again uint32
	if err := p.admin.QueryRow(ctx, selectOID, name).Scan(&again); err != nil || again != made {
		t.Errorf("a complete template was made anew: %d, then %d, %v", made, again, err)
	}
	copied := p.database(t, name)
	states, err := migrations.Status(ctx, copied)
	if err != nil || !states[len(states)-1].Applied {
		t.Errorf("the copy is not migrated: %+v, %v", states, err)
	}
}

func TestWithDatabaseReplacesTheName(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"postgres://u:p@h:1/db?sslmode=disable": "postgres://u:p@h:1/new?sslmode=disable",
		"postgresql://h":                        "postgresql://h/new",
		"postgres://h/db?dbname=other":          "postgres://h/new",
		"host=h dbname=db":                      "host=h dbname=db dbname=new",
	} {
		got, err := services.WithDatabase(given, "new")
		if err != nil || got != want {
			t.Errorf("%q becomes %q, want %q (%v)", given, got, want, err)
		}
		config, err := pgx.ParseConfig(got)
		if err != nil || config.Database != "new" {
			t.Errorf("%q leads to another database: %v", got, err)
		}
	}
	if _, err := services.WithDatabase("postgres://u:%zz@h/db", "new"); err == nil || strings.Contains(err.Error(), "zz") {
		t.Errorf("a broken URL: %v", err)
	}
}

func TestEmulatorHostIsUsed(t *testing.T) {
	t.Parallel()
	if host := EmulatorHost(t); !strings.Contains(host, ":") {
		t.Errorf("%q is not host:port", host)
	}
}

func TestContextBoundsWaits(t *testing.T) {
	t.Parallel()
	endsAfter := func(t *testing.T, want time.Duration) {
		t.Helper()
		ctx, began := Context(t), time.Now()
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, errTooLong) || time.Since(began) != want {
			t.Errorf("the context ended after %s with %v, want %s", time.Since(began), cause, want)
		}
	}
	synctest.Test(t, func(t *testing.T) { endsAfter(t, waitLimit()) })
	if limit := waitLimit(); limit < time.Minute || limit > 10*time.Minute {
		t.Errorf("a test waits for %s", limit)
	}
	t.Run("promised", func(t *testing.T) {
		Promised(t, 15*time.Second)
		synctest.Test(t, func(t *testing.T) { endsAfter(t, 150*time.Second) })
		t.Run("part", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { endsAfter(t, 150*time.Second) })
		})
	})
	synctest.Test(t, func(t *testing.T) { endsAfter(t, waitLimit()) })
}

func TestLoggerLevelFollowsVerbose(t *testing.T) {
	t.Parallel()
	log := Logger(t)
	if !log.Core().Enabled(1) || log.Core().Enabled(-1) != testing.Verbose() {
		t.Error("the level is not warn, or debug under -v")
	}
	log.Debug("only under -v")
}
