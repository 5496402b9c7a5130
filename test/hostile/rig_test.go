package hostile_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

// The canvases: most identities have rights on the first, and none on the second.
var (
	canvasA = eventqueue.CanvasID{0xa, 15: 1}
	canvasB = eventqueue.CanvasID{0xb, 15: 1}
)

// marker is in all texts of canvas B, and in no request.
const marker = "secretofb"

// secret signs webhooks.
const secret = "hush"

// rig is a worker with all its doors, on a database of its own.
type rig struct {
	t            *testing.T
	pool         *pgxpool.Pool
	worker       *programs.Process
	site, health string // the addresses of API and dashboard, and of PORT
	sent         atomic.Int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if runtime.GOOS != "linux" {
		testenv.Missing(t, "the memory of a process is read from /proc")
	}
	database := testenv.DatabaseURL(t)
	pool, err := pgxpool.New(testenv.Context(t), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := &rig{t: t, pool: pool}
	handlers := r.file("handlers.yaml", `handlers: [{module: WORKER, name: greet, modifier: _, url: "http://127.0.0.1:9/"}]
webhooks: [{source: github, scheme: github, secrets: [SECRET], module: WORKER, modifier: _, names: {push: build}}]
`)
	r.token(access.Grant{Verbs: access.Verbs()}) // without any, the machine itself would be let in
	log := filepath.Join(t.TempDir(), "log")
	r.worker, err = programs.Start(programs.Program{Name: programs.Worker, Path: filepath.Join(binaries, programs.Worker), Log: log,
		Env: programs.Environment(map[string]string{"DATABASE_URL": database, "NOTIFIER": "postgres", "HANDLERS_FILE": handlers, "SECRET": secret, "PORT": "0",
			"API_LISTEN": "127.0.0.1:0", "DASHBOARD": "true", "TRUSTED_PROXIES": "127.0.0.0/8", "OTEL_METRICS_EXPORTER": "prometheus"})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.worker.Kill)
	if err := r.worker.AwaitStart(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	r.site, r.health = r.address("the HTTP API listens"), r.address("health endpoints listen")
	return r
}

func (r *rig) file(name, text string) (path string) {
	r.t.Helper()
	path = filepath.Join(r.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// address is the address that the worker has logged.
func (r *rig) address(message string) string {
	r.t.Helper()
	if err := r.worker.Await(testenv.Context(r.t), message); err != nil {
		r.t.Fatal(err)
	}
	found := regexp.MustCompile(message + `[^\n]*"address":"[^"]*:(\d+)"`).FindStringSubmatch(r.worker.LogText())
	if found == nil {
		r.t.Fatal("the log names no address")
	}
	return "http://127.0.0.1:" + found[1]
}

// token makes a token.
func (r *rig) token(grant access.Grant) string {
	r.t.Helper()
	by := audit.Actor{Name: "os:test", Source: "here", Via: "eventctl"}
	_, text, err := access.NewTokens("", r.pool).Create(testenv.Context(r.t), by, access.NewToken{Name: "hostile", Grant: grant, For: time.Hour})
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(testenv.Context(r.t), sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

func (r *rig) text(sql string, args ...any) (text string) {
	r.t.Helper()
	if err := r.pool.QueryRow(testenv.Context(r.t), sql, args...).Scan(&text); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// seed fills both canvases: on each an event that waits, with number 1 or 2, one that has failed, with 3 or 4, and rules, limits
// and cron definitions.
func (r *rig) seed() {
	r.t.Helper()
	for i, canvas := range []eventqueue.CanvasID{canvasA, canvasB} {
		text := []string{"ours", marker}[i]
		args := []any{[16]byte(canvas), text}
		r.exec(fmt.Sprintf(`INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, notified_at, attributes)
			VALUES (%d, $1, $2, $2, '_', to_json($2::text)::text, now() + interval '1 year', now(), jsonb_build_object('of', $2::text))`, i+1), args...)
		r.exec(fmt.Sprintf(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, result)
			VALUES (%d, $1, $2, $2, '_', to_json($2::text)::text, 'FAILED', 3, 4, $2, now(), to_json($2::text)::text)`, i+3), args...)
		r.exec(`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error) SELECT id, 4, canvas_id, now(), '1s', $2 FROM event_log WHERE canvas_id = $1`, args...)
		r.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, handler_name, event_space, reason) VALUES ('pause', $1, $2, $2, $2)`, args...)
		r.exec(`INSERT INTO rate_limits (canvas_id, module, name, per_day) VALUES ($1, $2, $2, 7)`, args...)
		r.exec(`INSERT INTO cron_definitions (canvas_id, name, schedule) VALUES ($1, $2, 'every day')`, args...)
	}
	r.exec(`SELECT setval('events_id_seq', 1000)`)
}

// of is all that the database has of a canvas.
func (r *rig) of(canvas eventqueue.CanvasID) string {
	r.t.Helper()
	var all []string
	for _, table := range []string{"events_v2", "event_log", "event_attempts", "scheduling_rules", "concurrency_limits", "rate_limits", "cron_definitions", "audit_log"} {
		all = append(all, r.text(`SELECT coalesce(string_agg(t::text, ' ' ORDER BY t::text), '') FROM `+table+` AS t WHERE canvas_id = $1`, [16]byte(canvas)))
	}
	return strings.Join(all, "\n")
}

// from is an address of its own for each request, so that wrong credentials of one do not count against another.
func (r *rig) from() string {
	n := r.sent.Add(1)
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

// memory is the use of a process now, or at most, in MiB: VmRSS or VmHWM.
func (r *rig) memory(which string) int {
	r.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.worker.PID))
	if err != nil {
		r.t.Fatalf("the worker is gone: %v\n%s", err, r.worker.LastWords())
	}
	found := regexp.MustCompile(which + `:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		r.t.Fatalf("there is no %s in\n%s", which, status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		r.t.Fatal(err)
	}
	return kib >> 10
}
