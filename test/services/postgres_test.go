package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// startPostgres starts a Postgres from binaries for the test.
func startPostgres(t *testing.T, options ...Option) *Service {
	t.Helper()
	unlessAvailable(t, "postgres")
	service, err := Postgres(deadline(t), append(options, Private())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return service
}

func query(t *testing.T, databaseURL, sql string) string {
	t.Helper()
	ctx := deadline(t)
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // only the answer counts
	var answer string
	if err := conn.QueryRow(ctx, sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

const selectSettings = `
SELECT concat_ws(' ', current_setting('fsync'), current_setting('synchronous_commit'),
       current_setting('max_connections'), current_setting('listen_addresses'),
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user))`

func TestPostgresStartsFromBinaries(t *testing.T) {
	t.Parallel()
	service := startPostgres(t)
	if !strings.HasPrefix(service.Origin, "binaries in ") || service.PID == 0 {
		t.Errorf("got %+v", service)
	}
	if got, want := query(t, service.URL, selectSettings), "off off 300 127.0.0.1 t"; got != want {
		t.Errorf("settings %q, want %q", got, want)
	}
	if _, err := pgx.Connect(deadline(t), strings.Replace(service.URL, "postgres:", "postgres:x", 2)); err == nil {
		t.Error("a wrong password is accepted")
	}

	// The environment comes first.
	named, err := Postgres(deadline(t), func(s *settings) { s.getenv = environment(databaseURLVariable, service.URL) })
	if err != nil {
		t.Fatal(err)
	}
	if named.Origin != databaseURLVariable || named.URL != service.URL || named.PID != 0 {
		t.Errorf("got %+v", named)
	}
	if err := named.Restart(deadline(t)); err == nil || !strings.Contains(err.Error(), "Private") {
		t.Errorf("restarting a Postgres of others: %v", err)
	}
	if err := named.Stop(deadline(t)); err != nil || processIsGone(service.PID) {
		t.Errorf("stopping a Postgres of others: %v", err)
	}

	dir := service.homeDir()
	for range 2 {
		if err := service.Stop(deadline(t)); err != nil {
			t.Fatal(err)
		}
	}
	if !processIsGone(service.PID) || (dir != "" && !directoryIsGone(dir)) {
		t.Errorf("process %d or directory %s is still there", service.PID, dir)
	}
}

func TestPostgresSurvivesARestart(t *testing.T) {
	t.Parallel()
	service := startPostgres(t, Durable(), Setting("shared_buffers", "48MB"))
	if got, want := query(t, service.URL, "SHOW shared_buffers"), "48MB"; got != want {
		t.Errorf("shared_buffers is %s, want %s", got, want)
	}
	if got, want := query(t, service.URL, selectSettings), "on on 300 127.0.0.1 t"; got != want {
		t.Errorf("settings %q, want %q", got, want)
	}
	preloaded := query(t, service.URL, "SHOW shared_preload_libraries")
	ctx := deadline(t)
	conn, err := pgx.Connect(ctx, service.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "CREATE TABLE kept AS SELECT 'here'::text AS what"); err != nil {
		t.Fatal(err)
	}
	before := service.PID
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := service.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(ctx); err == nil {
		t.Error("a connection has survived the kill")
	}
	if service.PID == before || processIsGone(service.PID) {
		t.Errorf("process %d after process %d", service.PID, before)
	}
	if got := query(t, service.URL, "SELECT what FROM kept"); got != "here" {
		t.Errorf("the table says %q", got)
	}
	if got := query(t, service.URL, "SHOW shared_preload_libraries"); got != preloaded {
		t.Errorf("preloaded %q, was %q", got, preloaded)
	}
	// And while it runs.
	if err := service.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	query(t, service.URL, "SELECT what FROM kept")
}

func TestPostgresAvoidsATakenPort(t *testing.T) {
	t.Parallel()
	unlessAvailable(t, "postgres")
	ctx := deadline(t)
	bin, _ := findPostgres()
	cred, err := serverUser()
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHome("", "test", cred, serverEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{home: h, bin: bin, password: "secret", port: occupied(t)}
	err = errors.Join(c.initdb(ctx), c.configure(nil))
	if err == nil {
		_, err = c.start(ctx)
	}
	// Only this error makes create try another port.
	if !errors.Is(err, errEnded) || !strings.Contains(h.log(), fmt.Sprint(c.port)) {
		t.Errorf("got %v, want errEnded; its log:\n%s", err, h.log())
	}
	if err := h.remove(ctx); err != nil || !directoryIsGone(h.dir) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// environment is an environment of one variable.
func environment(name, value string) func(string) string {
	return func(asked string) string {
		if asked == name {
			return value
		}
		return ""
	}
}

// nothing is a machine without anything on it.
func nothing(s *settings) {
	s.getenv = environment("", "")
	s.postgresBin = func() (string, bool) { return "", false }
	s.emulatorBin = func(context.Context) (string, string) { return "", "there is no gcloud on PATH" }
	s.docker = func(context.Context) error { return errors.New("no socket") }
}

func TestErrorsNameTheRemedy(t *testing.T) {
	t.Parallel()
	dead := fmt.Sprintf("postgres://me:s3cret@127.0.0.1:%d/db", 1)
	for name, test := range map[string]struct {
		start    func(context.Context, ...Option) (*Service, error)
		option   Option
		notFound bool
		want     []string
	}{
		"no postgres": {Postgres, nothing, true, []string{"DATABASE_URL is not set", "initdb and postgres are neither", "no socket", "apt-get install postgresql", "brew install"}},
		"no emulator": {Emulator, nothing, true, []string{"PUBSUB_EMULATOR_HOST is not set", "no gcloud on PATH", "no socket", "pubsub-emulator"}},
		"dead postgres": {Postgres, func(s *settings) { s.getenv = environment(databaseURLVariable, dead) }, false,
			[]string{"DATABASE_URL", "does not answer", "unset DATABASE_URL"}},
		"dead emulator": {Emulator, func(s *settings) { s.getenv = environment(emulatorHostVariable, "127.0.0.1:1") }, false,
			[]string{"PUBSUB_EMULATOR_HOST", "127.0.0.1:1", "unset PUBSUB_EMULATOR_HOST"}},
		"broken postgres": {Postgres, func(s *settings) {
			nothing(s)
			s.postgresBin = func() (string, bool) { return "/nowhere", true }
		}, false, []string{"binaries in /nowhere", "initdb failed with status 127"}},
		"broken emulator": {Emulator, func(s *settings) {
			nothing(s)
			s.emulatorBin = func(context.Context) (string, string) { return "/nowhere/emulator", "" }
		}, false, []string{"/nowhere/emulator", "the server ended"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := test.start(deadline(t), test.option)
			if err == nil || errors.Is(err, ErrNotFound) != test.notFound {
				t.Fatalf("got %v, ErrNotFound must be %v", err, test.notFound)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message %q lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the message %q shows the password", err)
			}
		})
	}
}

func TestNewestPostgresIsChosen(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	install := func(version string, programs ...string) {
		dir := filepath.Join(root, version, "bin")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, program := range programs {
			if err := os.WriteFile(filepath.Join(dir, program), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	pattern := filepath.Join(root, "*", "bin")
	if dir, ok := newestPostgres(pattern); ok {
		t.Errorf("found %s in an empty place", dir)
	}
	for _, step := range []struct {
		version  string
		programs []string
		want     string
	}{
		{"9.6", []string{"initdb", "postgres"}, "9.6"},
		{"15", []string{"initdb", "postgres"}, "15"},
		{"postgresql@16", []string{"initdb", "postgres"}, "postgresql@16"},
		{"14", []string{"initdb", "postgres"}, "postgresql@16"},
		{"18", []string{"psql"}, "postgresql@16"}, // the client alone
		{"latest", []string{"initdb", "postgres"}, "postgresql@16"},
	} {
		install(step.version, step.programs...)
		if dir, _ := newestPostgres(pattern); dir != filepath.Join(root, step.want, "bin") {
			t.Errorf("with %s added the newest is %s, want %s", step.version, dir, step.want)
		}
	}
}
