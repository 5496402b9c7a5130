package eventctl

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/test/testenv"
)

const (
	canvasA = "aaaaaaaa-0000-4000-8000-000000000001"
	canvasB = "bbbbbbbb-0000-4000-8000-000000000002"
)

// update rewrites the golden files.
var update = flag.Bool("update", false, "rewrite the files in testdata")

// cli runs the program in process, on a database of its own.
type cli struct {
	t    *testing.T
	ctx  context.Context
	env  map[string]string
	pool *pgxpool.Pool
}

// newCLI has a database and no Pub/Sub.
func newCLI(t *testing.T) *cli {
	t.Helper()
	url := testenv.DatabaseURL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &cli{t, testenv.Context(t), map[string]string{"DATABASE_URL": url}, pool}
}

// publishing adds a notifier: the client library's fake, which keeps what is published.
func (c *cli) publishing(options ...pstest.ServerReactorOption) *pstest.Server {
	c.t.Helper()
	server := pstest.NewServerWithAddress("127.0.0.1:0", options...)
	c.t.Cleanup(func() {
		if err := server.Close(); err != nil {
			c.t.Errorf("close the fake of Pub/Sub: %v", err)
		}
		server.Wait()
	})
	c.env = maps.Clone(c.env)
	c.env["PUBSUB_EMULATOR_HOST"] = server.Addr
	c.env["PUBSUB_CREATE"] = "true"
	c.env["PUBLISH_TIMEOUT"] = "1m" // the machine may be busy
	return server
}

// result is the result of one run of the program.
type result struct {
	t        *testing.T
	status   int
	out, err string
}

func (c *cli) run(args ...string) result { c.t.Helper(); return c.runWith(c.ctx, nil, args...) }

func (c *cli) runWith(ctx context.Context, stdin io.Reader, args ...string) result {
	c.t.Helper()
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	var out, err bytes.Buffer
	status := Run(ctx, args, c.env, stdin, &out, &err)
	return result{c.t, status, out.String(), err.String()}
}

// is checks the exit status and that both outputs hold what they should.
func (r result) is(status int, out, err string) result {
	r.t.Helper()
	if r.status != status || !strings.Contains(r.out, out) || !strings.Contains(r.err, err) {
		r.t.Errorf("exit status %d, stdout:\n%s\nstderr:\n%s\nwant status %d, stdout with %q, stderr with %q",
			r.status, r.out, r.err, status, out, err)
	}
	if status == exitOK && err == "" && r.err != "" {
		r.t.Errorf("stderr: %s", r.err)
	}
	return r
}

// into decodes the JSON document on standard output.
func (r result) into(document any) {
	r.t.Helper()
	decoder := json.NewDecoder(strings.NewReader(r.out))
	if err := decoder.Decode(document); err != nil {
		r.t.Fatalf("standard output is not JSON: %v\n%s", err, r.out)
	}
	if decoder.More() {
		r.t.Errorf("standard output is more than one document:\n%s", r.out)
	}
}

// times are those in results, which are other ones in each run.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d+s\b`)

func (r result) withoutTimes() result {
	r.out = times.ReplaceAllString(r.out, "TIME")
	return r
}

// golden compares standard output with a file in testdata.
func (r result) golden(name string) {
	r.t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(r.out), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.out != string(want) {
		r.t.Errorf("standard output:\n%s\nwant %s:\n%s", r.out, path, want)
	}
}

func (c *cli) exec(sql string, args ...any) {
	c.t.Helper()
	if _, err := c.pool.Exec(c.ctx, sql, args...); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

// one returns the only value of a query.
func one[T any](c *cli, sql string, args ...any) (value T) {
	c.t.Helper()
	if err := c.pool.QueryRow(c.ctx, sql, args...).Scan(&value); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func (c *cli) events() int { c.t.Helper(); return one[int](c, `SELECT count(*) FROM events_v2`) }

// file writes a file for the test.
func (c *cli) file(content string) string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "events.ndjson")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func scopeArgs(command, canvas, module, name string, more ...string) []string {
	return append([]string{command, "--canvas", canvas, "--module", module, "--name", name}, more...)
}

func emitArgs(value string, more ...string) []string {
	return append(scopeArgs("emit", canvasA, "WORKER", "greet", "--value", value), more...)
}
