package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

var canvas = eventqueue.CanvasID{0xe2, 0xe, 15: 1}

// rig is one deployment: a database, a subscription on the emulator, an HTTP
// target, and the programs that a test starts.
type rig struct {
	t           *testing.T
	environment map[string]string
	pool        *pgxpool.Pool
	store       *pgstore.Store
	notifier    *pubsubnotify.Notifier
	queue       *eventqueue.Queue
	target      *target
}

// newRig makes a deployment with handlers of module WORKER and the given names;
// each posts to the target under its name.
func newRig(t *testing.T, names ...string) *rig {
	t.Helper()
	return newRigOn(t, testenv.EmulatorHost(t), names...)
}

func newRigOn(t *testing.T, emulator string, names ...string) *rig {
	t.Helper()
	ctx := testenv.Context(t)
	url := testenv.DatabaseURL(t)
	id := strings.ReplaceAll(filepath.Base(t.TempDir()), ".", "") + strings.ToLower(filepath.Base(filepath.Dir(t.TempDir())))
	r := &rig{t: t, target: newTarget(t)}
	r.environment = map[string]string{
		"PATH":                 os.Getenv("PATH"),
		"DATABASE_URL":         url,
		"PUBSUB_EMULATOR_HOST": emulator,
		"PUBSUB_PROJECT_ID":    "e2e",
		"PUBSUB_TOPIC":         "topic-" + id,
		"PUBSUB_SUBSCRIPTION":  "subscription-" + id,
		"PUBSUB_CREATE":        "true",
		"PORT":                 "0",
		"HANDLERS_FILE":        r.handlersFile(names),
		"LOG_LEVEL":            "debug",
		"PUBLISH_TIMEOUT":      publishTimeout.String(),
	}
	var err error
	r.notifier, err = pubsubnotify.New(ctx, pubsubnotify.Config{ProjectID: "e2e", Topic: "topic-" + id,
		Subscription: "subscription-" + id, Create: true, EmulatorHost: emulator})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.notifier.Close() })
	if r.pool, err = pgxpool.New(ctx, url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.pool.Close)
	r.store = pgstore.New(r.pool)
	r.queue = newQueue(t, r.store, r.notifier)
	return r
}

// publishTimeout is how long the deployment of a test waits for a notification to be published.
// Most have no relay, without which an event whose notification was given up never starts, and on
// a busy machine the emulator may take longer than the default.
const publishTimeout = time.Minute

// promisedStart is within what time events start beside any single failure, and after it (docs/guarantees.md).
const promisedStart = 10 * time.Second

// newQueue makes the queue that a test emits with.
func newQueue(t *testing.T, store eventqueue.EmitStore, notifier eventqueue.Publisher) *eventqueue.Queue {
	t.Helper()
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{PublishTimeout: publishTimeout, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

// onEachNotifier runs a test with Pub/Sub, and with nothing but Postgres.
func onEachNotifier(t *testing.T, test func(r *rig), names ...string) {
	t.Helper()
	for notifier, newRig := range map[string]func(*testing.T, ...string) *rig{"Pub/Sub": newRig, "Postgres": newPostgresRig} {
		t.Run(notifier, func(t *testing.T) {
			t.Parallel()
			test(newRig(t, names...))
		})
	}
}

func (r *rig) handlersFile(names []string) string {
	r.t.Helper()
	return r.handlersFileWith("{base: 100ms, max: 1s}", names)
}

// handlersFileWith writes a handlers file whose handlers wait so long before they are tried again.
func (r *rig) handlersFileWith(backoff string, names []string) string {
	r.t.Helper()
	var b strings.Builder
	b.WriteString("handlers:\n")
	for _, name := range names {
		fmt.Fprintf(&b, "  - {module: WORKER, name: %s, modifier: _, url: %q, backoff: %s}\n", name, r.target.URL+"/"+name, backoff)
	}
	path := filepath.Join(r.t.TempDir(), "handlers.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

func event(name, value string) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: canvas, Module: "WORKER", Name: name, Modifier: "_", Value: json.RawMessage(value)}
}

func (r *rig) emit(events ...eventqueue.NewEvent) []eventqueue.EventID {
	r.t.Helper()
	ids, err := r.queue.EmitMany(testenv.Context(r.t), events)
	if err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// one returns the only value of a query.
func one[T any](r *rig, sql string, args ...any) T {
	r.t.Helper()
	var v T
	if err := r.pool.QueryRow(testenv.Context(r.t), sql, args...).Scan(&v); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// awaitSQL waits until a query that returns a boolean returns true.
func (r *rig) awaitSQL(what, sql string, args ...any) {
	r.t.Helper()
	testenv.Eventually(r.t, what, func() bool { return one[bool](r, sql, args...) })
}

// program is a running child process.
type program struct {
	*programs.Process
	t *testing.T
}

// env is the environment of the deployment, with changes.
func (r *rig) env(change map[string]string) (env []string) {
	settings := maps.Clone(r.environment)
	maps.Copy(settings, change)
	for key, value := range settings {
		env = append(env, key+"="+value)
	}
	return env
}

// command is a program that runs to its end.
func (r *rig) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(testenv.Context(r.t), filepath.Join(binaries, name), args...)
	cmd.Env = r.env(nil)
	return cmd
}

// start starts a program; it is killed when the test ends.
func (r *rig) start(name string, change map[string]string, args ...string) *program {
	r.t.Helper()
	started, err := programs.Start(programs.Program{Name: name, Path: filepath.Join(binaries, name), Args: args, Env: r.env(change),
		Log: filepath.Join(r.t.TempDir(), "log")})
	if err != nil {
		r.t.Fatal(err)
	}
	p := &program{started, r.t}
	r.t.Cleanup(func() {
		p.Kill()
		if r.t.Failed() {
			r.t.Logf("log of %s:\n%s", name, p.text())
		}
	})
	return p
}

func (p *program) name() string { return p.Name }
func (p *program) text() string { return p.LogText() }

// await waits for a text in the log.
func (p *program) await(text string) {
	p.t.Helper()
	if err := p.Await(testenv.Context(p.t), text); err != nil {
		p.t.Fatal(err)
	}
}

// says waits for a text in the log, and reports whether it came before the program ended.
func (p *program) says(text string) bool {
	p.t.Helper()
	err := p.Await(testenv.Context(p.t), text)
	if err != nil && p.Running() {
		p.t.Fatal(err)
	}
	return err == nil
}

// terminate sends SIGTERM and returns the exit status.
func (p *program) terminate() int {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	return p.wait()
}

func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.Exited:
		return p.Status
	case <-testenv.Context(p.t).Done():
		p.t.Fatalf("%s does not end", p.Name)
		return -1
	}
}

// target is the HTTP server that handlers post to.
type target struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	answer   http.HandlerFunc
	changed  chan struct{}
}

type request struct {
	name, id, body string
	header         http.Header
}

func newTarget(t *testing.T) *target {
	tg := &target{changed: make(chan struct{})}
	tg.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		tg.mu.Lock()
		tg.requests = append(tg.requests, request{strings.TrimPrefix(r.URL.Path, "/"), r.Header.Get("Ce-Id"), string(body), r.Header})
		close(tg.changed)
		tg.changed = make(chan struct{})
		answer := tg.answer
		tg.mu.Unlock()
		if answer != nil {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			answer(w, r)
		}
	}))
	t.Cleanup(tg.CloseClientConnections)
	t.Cleanup(tg.Close)
	return tg
}

// answerWith sets how the target answers; nil is 200.
func (tg *target) answerWith(f http.HandlerFunc) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.answer = f
}

// holdUntil has no request answered until let is closed.
func (tg *target) holdUntil(let <-chan struct{}) {
	tg.answerWith(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-let:
		case <-request.Context().Done():
		}
	})
}

// await waits until n requests have come and returns all of them.
func (tg *target) await(t *testing.T, n int) []request {
	t.Helper()
	ctx := testenv.Context(t)
	for {
		tg.mu.Lock()
		changed, got := tg.changed, append([]request(nil), tg.requests...)
		tg.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d requests came, want %d", len(got), n)
		}
	}
}
