package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"eventsv2/test/testenv"
)

const canary = "canary-in-a-cage"

// scrape returns what a program serves as /metrics.
func (p *program) scrape() (status int, text string) { return p.page("/metrics") }

// series are the values of a scrape.
func series(t *testing.T, text string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		values[line[:cut]] = value
	}
	return values
}

// withPassword has a rig connect with a password that must not show anywhere.
func (r *rig) withPassword() {
	r.t.Helper()
	u, err := url.Parse(r.environment["DATABASE_URL"])
	if err != nil {
		r.t.Fatal(err)
	}
	if _, has := u.User.Password(); has {
		return // the server asks for it
	}
	u.User = url.UserPassword(u.User.Username(), canary)
	r.environment["DATABASE_URL"] = u.String()
}

// TestPrometheusScrapesPrograms: what has happened is on /metrics of worker and cron, in a form that promtool
// accepts, and no secret is.
func TestPrometheusScrapesPrograms(t *testing.T) {
	t.Parallel()
	promtool := testenv.Program(t, "prometheus", "promtool")
	r := newPostgresRig(t, "greet", "fail")
	r.withPassword()
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/fail" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	exported := map[string]string{"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=" + canary}
	cron := r.start("cron", exported)
	worker := r.start("worker", exported)
	worker.await("worker started")
	for range 3 {
		r.emit(event("greet", `"`+canary+`"`))
	}
	r.emit(event("fail", `"`+canary+`"`), event("greet", `1`))
	r.awaitSQL("all events have ended", `SELECT count(*) = 0 FROM events_v2`)

	r.emit(event("nobody", `1`)) // which no worker has
	// The relay counts once a minute, which is too long for a test. Of the counts of a minute to come it changes none.
	if _, err := r.pool.Exec(testenv.Context(t), `INSERT INTO event_minutes (minute, canvas_id, module, name, pending, oldest_due)
		VALUES (date_trunc('minute', clock_timestamp(), 'UTC') + interval '5 minutes', $1, 'WORKER', 'nobody', 17, interval '40 seconds')`, [16]byte(canvas)); err != nil {
		t.Fatal(err)
	}
	var values map[string]float64
	var texts string
	for _, p := range []struct {
		program *program
		want    map[string]float64
	}{{worker, map[string]float64{
		`eventsv2_runs_total{end="completed",handler="WORKER/greet"}`: 4,
		`eventsv2_runs_total{end="failed",handler="WORKER/fail"}`:     1,
		`eventsv2_run_duration_seconds_count{handler="WORKER/greet"}`: 4,
		`eventsv2_wait_duration_seconds_count`:                        5,
		`eventsv2_events_claimed_total`:                               5,
		`eventsv2_pool_max`:                                           10,
		`eventsv2_worker_busy`:                                        0,
		`eventsv2_worker_slots`:                                       500,
		`eventsv2_worker_hung`:                                        0,
	}}, {cron, map[string]float64{
		`eventsv2_events_pending{handler="WORKER/nobody"}`:            17,
		`eventsv2_events_oldest_due_seconds{handler="WORKER/nobody"}`: 40,
	}}} {
		testenv.Eventually(t, p.program.Name+" shows what has happened", func() bool {
			status, text := p.program.scrape()
			if status != http.StatusOK {
				t.Fatalf("%s answers %d: %s", p.program.Name, status, text)
			}
			texts += text
			values = series(t, text)
			for name, want := range p.want {
				if values[name] != want {
					return false
				}
			}
			check := exec.CommandContext(testenv.Context(t), promtool, "check", "metrics")
			check.Stdin = strings.NewReader(text)
			if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("promtool: %v: %s of\n%s", err, out, text)
			}
			return true
		})
	}
	if _, workers := values[`eventsv2_events_claimed_total`]; workers {
		t.Error("cron reports what a worker does")
	}
	for what, text := range map[string]string{"metrics": texts, "the log of the worker": worker.text(), "the log of cron": cron.text()} {
		if strings.Contains(text, canary) {
			t.Errorf("a secret is in %s", what)
		}
	}
	if status, _ := r.start("worker", nil).scrape(); status != http.StatusNotFound {
		t.Errorf("without an exporter /metrics answers %d", status)
	}
}

// collector takes metrics and traces by OTLP.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	sums    map[string]int64 // by name, the last
	service string
	bodies  bytes.Buffer
	spans   map[string]string // the parents of spans, by the span: both as in traceparent
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{sums: map[string]int64{}, spans: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var body io.Reader = request.Body
		if request.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(request.Body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		text, err := io.ReadAll(body)
		var metrics colmetrics.ExportMetricsServiceRequest
		var traces coltraces.ExportTraceServiceRequest
		if err == nil && request.URL.Path == "/v1/traces" {
			err = proto.Unmarshal(text, &traces)
		} else if err == nil {
			err = proto.Unmarshal(text, &metrics)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.take(text, &metrics, &traces)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(text []byte, export *colmetrics.ExportMetricsServiceRequest, traces *coltraces.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies.Write(text)
	for _, resource := range traces.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans[fmt.Sprintf("%x-%x", span.GetTraceId(), span.GetSpanId())] = fmt.Sprintf("%x-%x", span.GetTraceId(), span.GetParentSpanId())
			}
		}
	}
	for _, resource := range export.GetResourceMetrics() {
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				c.service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeMetrics() {
			for _, metric := range scope.GetMetrics() {
				c.sums[metric.GetName()] = 0
				for _, point := range metric.GetSum().GetDataPoints() {
					c.sums[metric.GetName()] += point.GetAsInt()
				}
			}
		}
	}
}

// TestWorkerReportsByOTLP: what a worker has counted, and its runs as spans between those of the emitter and of the
// target, are with the collector.
func TestWorkerReportsByOTLP(t *testing.T) {
	t.Parallel()
	r, c := newPostgresRig(t, "greet"), newCollector(t)
	r.withPassword()
	const emitter = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
	requests := make(chan string, 3)
	r.target.answerWith(func(_ http.ResponseWriter, request *http.Request) { requests <- request.Header.Get("Traceparent") })
	worker := r.start("worker", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=" + canary,
		"OTEL_METRIC_EXPORT_INTERVAL": "500", "OTEL_BSP_SCHEDULE_DELAY": "500"})
	worker.await("worker started")
	for range 3 {
		greet := event("greet", `"`+canary+`"`)
		greet.Attributes = map[string]string{"traceparent": "00-" + emitter + "-01"}
		r.emit(greet)
	}
	r.awaitSQL("all events have ended", `SELECT count(*) = 0 FROM events_v2`)
	// On a busy machine the last second of a program may be too short for its last report.
	testenv.Eventually(t, "the collector has what the worker did", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.sums["eventsv2.runs"] == 3 && c.sums["eventsv2.events.claimed"] == 3 && len(c.spans) == 3
	})
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d", status)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.service != "eventsv2-worker" || c.sums["eventsv2.runs"] != 3 || c.sums["eventsv2.events.claimed"] != 3 {
		t.Errorf("%q reports %v", c.service, c.sums)
	}
	if len(c.spans) != 3 {
		t.Errorf("%d spans of 3 runs", len(c.spans))
	}
	for range 3 {
		sent := strings.TrimSuffix(strings.TrimPrefix(<-requests, "00-"), "-01")
		if c.spans[sent] != emitter {
			t.Errorf("the target was sent %q, whose parent is %q, and not the emitter's span", sent, c.spans[sent])
		}
	}
	if strings.Contains(c.bodies.String(), canary) || strings.Contains(worker.text(), canary) {
		t.Error("a secret is in what is reported, or in the log")
	}
}

// TestInvalidExporterStopsTheStart keeps a worker from starting.
func TestInvalidExporterStopsTheStart(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	worker := r.start("worker", map[string]string{"OTEL_METRICS_EXPORTER": "pigeon"})
	if status := worker.wait(); status != 1 || !strings.Contains(worker.text(), "OTEL_METRICS_EXPORTER") {
		t.Errorf("the worker ended with %d:\n%s", status, worker.text())
	}
}

// TestProgramServesItsProfiles to this machine, and refuses to serve them to others.
func TestProgramServesItsProfiles(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	refused := r.start("worker", map[string]string{"PPROF_LISTEN": "0.0.0.0:0"})
	if status := refused.wait(); status == 0 || !strings.Contains(refused.text(), "PPROF_LISTEN 0.0.0.0:0 can be reached by others") {
		t.Errorf("on all addresses the worker ended with %d:\n%s", status, refused.text())
	}
	for _, name := range []string{"worker", "cron"} {
		p := r.start(name, map[string]string{"PPROF_LISTEN": "127.0.0.1:0"})
		p.await("profiles are served")
		at := regexp.MustCompile(`"address":"([^"]+)","path":"/debug/pprof/"`).FindStringSubmatch(p.text())
		if at == nil {
			t.Fatalf("the log names no address:\n%s", p.text())
		}
		top := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "http://"+at[1]+"/debug/pprof/goroutine")
		if out, err := top.CombinedOutput(); err != nil || !strings.Contains(string(out), "Type: goroutine") {
			t.Errorf("go tool pprof: %v\n%s", err, out)
		}
		if status, _ := p.page("/debug/pprof/"); status != http.StatusNotFound {
			t.Errorf("on PORT /debug/pprof/ answers %d", status)
		}
	}
}
