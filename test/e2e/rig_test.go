package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	t    *testing.T
	name string
	cmd  *exec.Cmd
	mu   sync.Mutex
	log  bytes.Buffer
	seen chan struct{} // closed and replaced with each line
	done chan struct{} // closed when the process has ended and its log is read
}

// start starts a program; it is killed when the test ends.
func (r *rig) start(name string, change map[string]string, args ...string) *program {
	r.t.Helper()
	cmd := exec.Command(filepath.Join(binaries, name), args...)
	for key, value := range r.environment {
		if _, changed := change[key]; !changed {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	for key, value := range change {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	p := &program{t: r.t, name: name, cmd: cmd, seen: make(chan struct{}), done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go p.read(out)
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
		if r.t.Failed() {
			r.t.Logf("log of %s:\n%s", name, p.text())
		}
	})
	return p
}

func (p *program) read(out io.Reader) {
	defer close(p.done)
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.mu.Lock()
		p.log.Write(append(scanner.Bytes(), '\n'))
		close(p.seen)
		p.seen = make(chan struct{})
		p.mu.Unlock()
	}
	_ = p.cmd.Wait() // the exit status is in ProcessState
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// await waits for a text in the log.
func (p *program) await(text string) {
	p.t.Helper()
	if !p.says(text) {
		p.t.Fatalf("%s ended without saying %q:\n%s", p.name, text, p.text())
	}
}

// says waits for a text in the log, and reports whether it came before the program ended.
func (p *program) says(text string) bool {
	p.t.Helper()
	ctx := testenv.Context(p.t)
	for {
		p.mu.Lock()
		seen, found := p.seen, strings.Contains(p.log.String(), text)
		p.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-seen:
		case <-p.done:
			return strings.Contains(p.text(), text)
		case <-ctx.Done():
			p.t.Fatalf("%s does not say %q:\n%s", p.name, text, p.text())
		}
	}
}

// terminate sends SIGTERM and returns the exit status.
func (p *program) terminate() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-testenv.Context(p.t).Done():
		p.t.Fatalf("%s does not end", p.name)
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
