package scale_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/httpapi"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

var events = flag.Int("events", 0, "measure with so many `events`, and judge the times; 0: with few, and no times")

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	few          = 2000
	mostSQL      = 300 * time.Millisecond
	mostBytes    = 200_000
	first        = "00000000-0000-0000-0001-000000000001"
	small        = "00000000-0000-0000-0001-000000000002"
	ofFirst      = "canvas_id=" + first
	ofFirstPage  = "canvas=" + first
	ofSmallPage  = "canvas=" + small
	ofSmallInAPI = "canvas_id=" + small
)

// pages are the requests: those of the dashboard, and the reads of the API.
func pages() []string {
	return []string{"/", "/?" + ofFirstPage, "/?" + ofSmallPage, "/?range=6h", "/?range=24h", "/?range=7d", "/?range=24h&" + ofFirstPage, "/?range=24h&" + ofSmallPage, "/?range=7d&" + ofFirstPage, "/?range=7d&" + ofSmallPage, "/handlers", "/handlers?" + ofFirstPage, "/handler?" + ofFirstPage + "&module=WORKER&name=handler_1", "/handler?" + ofFirstPage + "&module=WORKER&name=handler_1&range=24h", "/handler?" + ofFirstPage + "&module=WORKER&name=handler_1&range=7d",
		"/events", "/events?" + ofFirstPage, "/events?" + ofSmallPage, "/events?" + ofSmallPage + "&state=paused", "/events?state=running", "/events?state=behind", "/events?state=paused&name=nobody",
		"/events?name=nobody", "/events?" + ofFirstPage + "&name=nobody", "/events?attribute=user%3Du7", "/events?attribute=user%3Dnobody", "/events?state=failed", "/events?state=cancelled&" + ofSmallPage,
		"/events?state=failed&name=nobody", "/events/1", "/events/7", "/events/1/edit", "/failed", "/failed?" + ofSmallPage, "/failed?" + ofFirstPage + "&module=WORKER&name=handler_1", "/groups", "/groups?" + ofSmallPage,
		"/crons", "/workers", "/audit", "/audit?" + ofSmallPage, "/tokens", "/operations", "/v1/events?" + ofFirst, "/v1/events?" + ofSmallInAPI + "&state=paused", "/v1/events?" + ofFirst + "&state=behind",
		"/v1/events?" + ofFirst + "&name=nobody", "/v1/events?" + ofFirst + "&attribute=user%3Dnobody", "/v1/history?" + ofFirst, "/v1/history?" + ofSmallInAPI + "&state=failed", "/v1/history?" + ofFirst + "&state=cancelled&name=nobody",
		"/v1/events/7", "/v1/events/7/attempts", "/v1/events/7/explain", "/v1/events/1/tree", "/v1/rules?" + ofFirst, "/v1/limits/concurrency?" + ofFirst, "/v1/limits/rate?" + ofFirst, "/v1/crons?" + ofFirst,
		"/v1/stats?" + ofFirst, "/v1/stats?" + ofSmallInAPI + "&since_seconds=86400&per=all", "/v1/stats?" + ofFirst + "&since_seconds=86400&per=all", "/v1/stats?" + ofFirst + "&since_seconds=1209600&per=hour",
		"/v1/workers", "/v1/tokens", "/v1/bulk", "/v1/audit", "/v1/audit?event=7"}
}

// measured are the statements since it was reset.
type measured struct {
	mu            sync.Mutex
	statements    int
	took, slowest time.Duration
}

type beginning struct{}

func (m *measured) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, beginning{}, time.Now())
}

func (m *measured) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if began, ok := ctx.Value(beginning{}).(time.Time); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		one := time.Since(began)
		m.statements, m.took, m.slowest = m.statements+1, m.took+one, max(m.slowest, one)
	}
}

func (m *measured) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return m.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{})
}

func (m *measured) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (m *measured) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchEndData) {
	m.TraceQueryEnd(ctx, conn, pgx.TraceQueryEndData{})
}

func (m *measured) reset() (statements int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	statements, took = m.statements, m.took
	m.statements, m.took, m.slowest = 0, 0, 0
	return statements, took
}

// pool makes a pool whose statements are measured.
func (m *measured) pool(t *testing.T, databaseURL string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer, config.MaxConns = m, 2
	for name, value := range map[string]string{"work_mem": "16MB", "enable_seqscan": "off", "jit": "off"} { // as the programs have them
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(testenv.Context(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestPagesAreFastOnAFullTable measures each page.
func TestPagesAreFastOnAFullTable(t *testing.T) {
	t.Parallel()
	var m measured
	pool := m.pool(t, testenv.DatabaseURL(t))
	n := max(*events, few)
	filled(t, pool, n)
	handler := served(t, rig.NewOn(t, pool))
	var table strings.Builder
	for _, path := range pages() {
		var statements, size int
		var took time.Duration
		for range 2 { // once to fill the caches
			m.reset()
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(context.WithoutCancel(testenv.Context(t)), http.MethodGet, "http://localhost"+path, http.NoBody))
			statements, took = m.reset()
			if size = answer.Body.Len(); answer.Code != http.StatusOK {
				t.Errorf("%s answers %d: %.300s", path, answer.Code, answer.Body)
			}
		}
		judged := ""
		if *events > 0 && took > mostSQL || size > mostBytes && !strings.HasPrefix(path, "/v1/") { // answers of the API are as large as was asked for
			judged = " TOO MUCH"
			t.Errorf("%s: %s of SQL, %d bytes", path, took, size)
		}
		fmt.Fprintf(&table, "| `%s` | %d | %d ms | %d kB |%s\n", strings.NewReplacer(first, "FIRST", small, "SMALL").Replace(path), statements, took.Milliseconds(), (size+999)/1000, judged)
	}
	if *events > 0 {
		fmt.Printf("%d events\n| request | statements | SQL | answer |\n|---|---|---|---|\n%s", n, table.String())
	}
}

// served serves dashboard and API with all rights.
func served(t *testing.T, r *rig.Rig) http.Handler {
	t.Helper()
	operations, err := operate.NewOperations(r.Store, r.Queue, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{Store: r.Store, Queue: r.Queue, Bulk: operations, PerSecond: 1e6,
		Access: &access.Authenticator{Tokens: access.NewTokens("", r.Pool), Issuers: nil, Loopback: true}})
	if err != nil {
		t.Fatal(err)
	}
	everything := access.Identity{Name: "ada", Grants: []access.Grant{{Verbs: access.Verbs()}}, Key: "ada"}
	site, err := dashboard.New(dashboard.Config{Store: r.Store, Queue: r.Queue, Bulk: operations, Log: testenv.Logger(t), Timeout: 2 * time.Minute,
		Identify: func(*http.Request) (access.Identity, error) { return everything, nil }})
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := access.NewTokens("", r.Pool).Create(testenv.Context(t), audit.Actor{Name: "test", Via: "test"}, access.NewToken{Name: "t", Grant: access.Grant{Verbs: access.Verbs()}})
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/v1/") {
			request.Header.Set("Authorization", "Bearer "+secret)
			api.ServeHTTP(w, request)
			return
		}
		site.ServeHTTP(w, request)
	})
}
