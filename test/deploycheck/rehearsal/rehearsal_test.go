package rehearsal_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/deploycheck/check"
	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

const root = "../../.."

func TestMain(m *testing.M) { testenv.Main(m) }

// rig is a database as Cloud SQL makes it, and users without any right in it.
type rig struct {
	t       *testing.T
	admin   *pgx.Conn
	project string // of the service accounts, whose users are the whole server's
	prefix  string // of the roles, likewise
	bin     string
}

const password = "local-only"

func newRig(t *testing.T) *rig {
	t.Helper()
	random := strings.ToLower(rand.Text()[:10])
	r := &rig{t: t, project: "my-project-" + random, prefix: "r" + random + "_", bin: t.TempDir()}
	admin, err := pgx.Connect(t.Context(), testenv.EmptyDatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	r.admin = admin
	t.Cleanup(r.dropUsers)
	// The database belongs to a role that every user is a member of whom "gcloud sql users create" makes with a
	// password; none of them is a superuser.
	r.exec(`CREATE ROLE %s NOLOGIN CREATEROLE CREATEDB`, r.name("cloudsqlsuperuser"))
	r.exec(`ALTER DATABASE %s OWNER TO %s`, pgx.Identifier{admin.Config().Database}.Sanitize(), r.name("cloudsqlsuperuser"))
	r.exec(`CREATE ROLE %s LOGIN CREATEROLE CREATEDB PASSWORD '%s' IN ROLE %s`, r.name("events_owner"), password, r.name("cloudsqlsuperuser"))
	for _, account := range accounts {
		r.exec(`CREATE ROLE %s LOGIN PASSWORD '%s'`, r.user(account), password)
	}
	if err := programs.Build(t.Context(), r.bin, programs.Deployed(programs.Worker, programs.Cron, programs.Ctl)); err != nil {
		t.Fatal(err)
	}
	return r
}

var accounts = []string{"events-worker", "events-cron", "events-emitter"}

func (r *rig) exec(format string, args ...any) {
	r.t.Helper()
	if _, err := r.admin.Exec(r.t.Context(), fmt.Sprintf(format, args...)); err != nil {
		r.t.Fatal(err)
	}
}

// name is a role that is this test's own: roles are the whole server's.
func (r *rig) name(role string) string { return pgx.Identifier{r.prefix + role}.Sanitize() }

// user returns the database user of a service account.
func (r *rig) user(account string) string {
	return pgx.Identifier{account + "@" + r.project + ".iam"}.Sanitize()
}

// dropUsers drops the roles of the test, and the connection.
func (r *rig) dropUsers() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rows, err := r.admin.Query(ctx, `SELECT rolname FROM pg_roles WHERE starts_with(rolname, $1) OR rolname LIKE '%@' || $2 || '.iam'`, r.prefix, r.project)
	if err != nil {
		r.t.Error(err)
		return
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		r.t.Error(err)
	}
	if _, err := r.admin.Exec(ctx, `ALTER DATABASE `+pgx.Identifier{r.admin.Config().Database}.Sanitize()+` OWNER TO CURRENT_USER`); err != nil {
		r.t.Error(err)
	}
	for _, sql := range []string{`DROP OWNED BY %s CASCADE`, `DROP ROLE %s`} {
		for _, name := range names {
			if _, err := r.admin.Exec(ctx, fmt.Sprintf(sql, pgx.Identifier{name}.Sanitize())); err != nil {
				r.t.Error(err)
			}
		}
	}
	if err := r.admin.Close(ctx); err != nil {
		r.t.Error(err)
	}
}

// server is where the proxy would be, for a DATABASE_URL of keywords and values.
func (r *rig) server() string {
	c := r.admin.Config()
	return fmt.Sprintf("host=%s port=%d", c.Host, c.Port)
}

// here has a DATABASE_URL of the deployment lead to the rig: with its server, its database and its users.
func (r *rig) here(url string) string {
	url = strings.Replace(url, "host=127.0.0.1 port=5432", r.server(), 1)
	url = strings.Replace(url, "dbname=events", "dbname="+r.admin.Config().Database, 1)
	url = strings.Replace(url, "user=events_owner", "user="+r.prefix+"events_owner", 1)
	return strings.Replace(url, "@my-project.iam", "@"+r.project+".iam password="+password, 1)
}

// TestDocumentedSetupGivesAUsableDatabase, with the rights that they get there and no others.
func TestDocumentedSetupGivesAUsableDatabase(t *testing.T) {
	t.Parallel()
	testenv.Program(t, "postgresql-client", "psql")
	r := newRig(t)
	r.runThePage()

	got := make(chan string, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case got <- request.Header.Get("ce-type"):
		default: // once is enough
		}
	}))
	t.Cleanup(target.Close)
	handlers := filepath.Join(t.TempDir(), "handlers.yaml")
	example := r.read("deploy/gke/base/handlers.yaml")
	example = regexp.MustCompile(`url: .*`).ReplaceAllString(example, "url: "+target.URL)
	if err := os.WriteFile(handlers, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	_, all := check.Files(root)
	for _, name := range []string{programs.Cron, programs.Worker} {
		r.start(name, all, handlers)
	}
	r.emit()
	select {
	case kind := <-got:
		if kind != "demo.hello" {
			t.Errorf("the target got %q", kind)
		}
	case <-testenv.Context(t).Done():
		t.Error("the event does not run")
	}
	testenv.Eventually(t, "the event has completed", func() bool {
		var left int
		err := r.admin.QueryRow(t.Context(), `SELECT count(*) FROM public.events_v2`).Scan(&left)
		return err == nil && left == 0
	})
}

func (r *rig) read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// runThePage runs step 4 as it is written, with stand-ins for the proxy and for "go run".
func (r *rig) runThePage() {
	r.t.Helper()
	_, step, found := strings.Cut(r.read("docs/deploy-cloud-run.md"), "\n## 4. Make the schema and its roles\n")
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(step)
	if !found || block == nil {
		r.t.Fatal("the page has no step 4 with commands")
	}
	dir := r.t.TempDir()
	for name, text := range map[string]string{
		"bin/cloud-sql-proxy": "#!/bin/sh\nexec tail -f /dev/null\n",
		"bin/go":              "#!/bin/sh\n[ \"$1 $2\" = \"run ./cmd/eventctl\" ] || exit 2\nshift 2\n[ \"$*\" = \"migrate roles\" ] && set -- migrate roles --prefix " + r.prefix + "\nexec " + filepath.Join(r.bin, programs.Ctl) + " \"$@\"\n",
		"deploy/grants.sql":   strings.ReplaceAll(r.read("deploy/grants.sql"), "GRANT queue_", "GRANT "+r.prefix),
		"step.sh":             "set -euo pipefail\n" + r.here(block[1]),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // some are programs
			r.t.Fatal(err)
		}
	}
	shell := exec.CommandContext(testenv.Context(r.t), "bash", "step.sh")
	shell.Dir = dir
	shell.Env = append(programs.Environment(map[string]string{"PROJECT_ID": r.project, "REGION": "europe-west1", "OWNER_PASSWORD": password}),
		"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		r.t.Fatalf("step 4 of the page: %v\n%s", err, out)
	}
}

// start starts a program with the environment of the overlay that needs no Pub/Sub, and waits until it is ready.
func (r *rig) start(name string, all []check.Program, handlers string) {
	r.t.Helper()
	var p check.Program
	for _, one := range all {
		if strings.HasPrefix(one.Where, "deploy/gke/overlays/postgres ") && one.Command[0] == "/"+name {
			p = one
		}
	}
	if p.Where == "" {
		r.t.Fatalf("the overlay starts no %s", name)
	}
	p.Env["DATABASE_URL"], p.Env["PORT"], p.Env["RELAY_INTERVAL"] = r.here(p.Env["DATABASE_URL"]), "0", "1s"
	if name == programs.Worker {
		p.Env["HANDLERS_FILE"] = handlers
	}
	log := filepath.Join(r.bin, name+".log")
	started, err := programs.Start(programs.Program{Name: name, Path: filepath.Join(r.bin, name), Env: programs.Environment(p.Env), Log: log})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := started.Stop(time.Minute); err != nil {
			r.t.Error(err)
		}
		if r.t.Failed() {
			r.t.Logf("%s:\n%s", name, started.LogText())
		}
	})
	testenv.Eventually(r.t, name+" is ready", func() bool {
		if !started.Running() {
			r.t.Fatalf("%s has ended: %s", name, started.LogText())
		}
		return ready(r.t.Context(), address(started.LogText()))
	})
}

// address is where a program says that it listens; "" if it has not said so yet.
func address(log string) string {
	for line := range strings.Lines(log) {
		var said struct{ Message, Address string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Message == "health endpoints listen" {
			return "127.0.0.1:" + said.Address[strings.LastIndex(said.Address, ":")+1:]
		}
	}
	return ""
}

func ready(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil || address == "" {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // only the status matters
	return response.StatusCode == http.StatusOK
}

// emit emits an event for the handler of the example, as the user of programs that emit.
func (r *rig) emit() {
	r.t.Helper()
	url := r.here("host=127.0.0.1 port=5432 sslmode=disable dbname=events user=events-emitter@my-project.iam")
	s, err := service.Open(r.t.Context(), service.Config{DatabaseURL: url, Notifier: service.Postgres, NoWorker: true, NoRelay: true, NoCron: true, NoPruner: true})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			r.t.Error(err)
		}
	}()
	_, err = s.Emit(r.t.Context(), eventqueue.NewEvent{Canvas: eventqueue.CanvasID(uuid.New()), Module: "demo", Name: "hello", Modifier: "_", Value: json.RawMessage(`{}`)})
	if err != nil {
		r.t.Fatal(err)
	}
}
