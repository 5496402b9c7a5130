package hostile_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

const (
	// refusalBytes is how long the answer to a refused request may be, and answerBytes any other one.
	refusalBytes = 64 << 10
	answerBytes  = 2 << 20
	// formGrowth is how much longer a page shows again what was written in its form, so that nobody has to write it once more.
	formGrowth = 6
	// The log may have so much for each request, and so long lines.
	logBytesPerRequest = 300
	logLineBytes       = 16 << 10
	// moreMiB is how much memory the worker may take for what is sent to it.
	moreMiB = 200
	// perCredentials is how many requests an identity makes with one token: fewer than are too many at once.
	perCredentials = 15
)

const form = "application/x-www-form-urlencoded"

// identity makes requests.
type identity struct {
	name string
	// letIn reports whether its credentials are valid, and onA whether its rights are on canvas A alone.
	letIn, onA bool
	// credentials returns a header, such as one with a new token.
	credentials func(r *rig) (header, value string)
}

func token(grant access.Grant) func(*rig) (header, value string) {
	return func(r *rig) (header, value string) { return "Authorization", "Bearer " + r.token(grant) }
}

// session logs in to the dashboard with a new token.
func session(grant access.Grant) func(*rig) (header, value string) {
	return func(r *rig) (header, value string) {
		a := r.ask(http.MethodPost, r.site+"/login", "token="+r.token(grant), func(h http.Header) { h.Set("Content-Type", form) })
		cookie, _, ends := strings.Cut(a.header.Get("Set-Cookie"), ";")
		if a.status != http.StatusSeeOther || !ends {
			r.t.Fatalf("no session begins: %d %.300s", a.status, a.text)
		}
		return "Cookie", cookie
	}
}

// ended is a token that was valid once.
func ended(column string) func(*rig) (header, value string) {
	return func(r *rig) (header, value string) {
		text := r.token(access.Grant{Verbs: access.Verbs()})
		sum := sha256.Sum256([]byte(text))
		r.exec(`UPDATE access_tokens SET `+column+` = now() - interval '1 minute' WHERE hash = $1`, sum[:])
		return "Authorization", "Bearer " + text
	}
}

func identities() []identity {
	onA := []eventqueue.CanvasID{canvasA}
	return []identity{
		{"nobody", false, false, func(*rig) (header, value string) { return "X-Nothing", "" }},
		{"garbage", false, false, func(*rig) (header, value string) { return "Authorization", "Bearer evt_\xff" + times(500, "x") }},
		{"revoked", false, false, ended("revoked_at")},
		{"expired", false, false, ended("expires_at")},
		{"reader of A", true, true, token(access.Grant{Canvases: onA, Verbs: []access.Verb{access.Read}})},
		{"reader of A, logged in", true, true, session(access.Grant{Canvases: onA, Verbs: []access.Verb{access.Read}})},
		{"every verb on A", true, true, token(access.Grant{Canvases: onA, Verbs: access.Verbs()})},
		{"every verb everywhere", true, false, token(access.Grant{Verbs: access.Verbs()})},
	}
}

// route is a method and a path, with what it is sent.
type route struct {
	method, path string // with {id}
	open         bool   // to whoever asks
	kind         string // of the bodies
	bodies       []string
	parameters   []string
	header       func(h http.Header, body string)
}

// apiRoutes returns those of the document that the worker serves.
func (r *rig) apiRoutes() (routes []route) {
	r.t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Parameters  []struct{ Name, In string }
			RequestBody struct {
				Content map[string]struct{ Schema *schema }
			}
		}
		Components struct{ Schemas map[string]*schema }
	}
	text := r.ask(http.MethodGet, r.site+"/v1/openapi.json", "", nil).text
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		r.t.Fatalf("the document cannot be read: %v", err)
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for method, operation := range document.Paths[path] {
			one := route{method: strings.ToUpper(method), path: r.site + path, kind: "application/json", bodies: []string{""}}
			for _, parameter := range operation.Parameters {
				if parameter.In == "query" {
					one.parameters = append(one.parameters, parameter.Name)
				}
			}
			if content, takes := operation.RequestBody.Content["application/json"]; takes {
				one.bodies = append(one.bodies, filler{schemas: document.Components.Schemas}.bodies(content.Schema)...)
			}
			routes = append(routes, one)
		}
	}
	if len(routes) < 40 {
		r.t.Fatalf("the document has only %d operations", len(routes))
	}
	return append(routes, route{method: "GET", path: r.site + "/v1/openapi.json", open: true, bodies: []string{""}},
		route{method: "POST", path: r.site + "/v1/nothing", bodies: []string{"", list(50_000, "{}")}}, route{method: "BREW", path: r.site + "/v1/events", bodies: []string{""}})
}

var dashboardRoute = regexp.MustCompile(`HandleFunc\("(GET|POST) (/[^"]*)"`)

// dashboardRoutes returns those of the source.
func (r *rig) dashboardRoutes() (routes []route) {
	r.t.Helper()
	source, err := os.ReadFile("../../dashboard/dashboard.go")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, found := range dashboardRoute.FindAllStringSubmatch(string(source), -1) {
		one := route{method: found[1], path: r.site + strings.ReplaceAll(found[2], "{$}", ""), bodies: []string{""}, kind: form,
			open: found[1] == "GET" && found[2] == "/login"}
		if one.method == "POST" {
			one.bodies = forms()
		} else {
			one.parameters = []string{"module", "name", "modifier", "state", "after", "before", "event", "actor", "attribute", "error", "since", "next"}
		}
		routes = append(routes, one)
	}
	if len(routes) < 35 {
		r.t.Fatalf("the source has only %d routes", len(routes))
	}
	for _, path := range []string{"/assets/", "/assets/..%2fpages/login.html", "/assets/%00", "/nothing"} {
		routes = append(routes, route{method: "GET", path: r.site + path, bodies: []string{""}})
	}
	return routes
}

// portRoutes returns what is served on PORT.
func (r *rig) portRoutes() (routes []route) {
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		routes = append(routes, route{method: "GET", path: r.health + path, open: true, bodies: []string{"", times(200_000, "x")}})
	}
	payloads := []string{"", "{}", "null", "\x00", "\"\xff\"", `{"a":"\u0000"}`, times(100_000, "["), times(20_000, `{"a":`) + "1" + times(20_000, "}"), list(50_000, "{}"),
		manyKeys(5_000), "1" + times(30_000, "0"), `"` + times(900_000, "x") + `"`}
	forged := func(h http.Header, _ string) {
		h.Set("X-Hub-Signature-256", "sha256="+times(1_000, "0"))
		h.Set("X-GitHub-Event", "push")
	}
	signed := func(h http.Header, body string) {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = io.WriteString(mac, body)
		h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		h.Set("X-GitHub-Event", "push")
		h.Set("X-GitHub-Delivery", times(3_000, "d"))
	}
	for _, path := range []string{canvasA.String() + "/github", canvasA.String() + "/unknown", "x/github", "%00/%ff", ""} {
		for _, header := range []func(http.Header, string){nil, forged} {
			routes = append(routes, route{method: "POST", path: r.health + "/webhooks/" + path, bodies: payloads, header: header})
		}
	}
	return append(routes, route{method: "POST", path: r.health + "/webhooks/" + canvasA.String() + "/github", open: true, bodies: payloads, header: signed})
}

// request is one of a route.
type request struct{ url, body string }

// requests returns what an identity asks of a route: each body, each query, and each id.
func (one route) requests() (all []request) {
	path := strings.ReplaceAll(one.path, "{id}", "2")
	for _, body := range one.bodies {
		all = append(all, request{path, body})
	}
	if one.parameters != nil {
		for _, query := range queries(one.parameters) {
			all = append(all, request{path + "?" + query, ""})
		}
	}
	if path != one.path {
		for _, id := range ids() {
			all = append(all, request{strings.ReplaceAll(one.path, "{id}", id), ""})
		}
	}
	return all
}

// client reuses its connections, follows nothing, and keeps no cookies.
var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 8},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// answer is the response; its status is 0 when the connection was cut off.
type answer struct {
	status int
	header http.Header
	text   string
}

// ask makes a request.
func (r *rig) ask(method, url, body string, change func(http.Header)) answer {
	asked, err := http.NewRequestWithContext(testenv.Context(r.t), method, url, strings.NewReader(body))
	if err != nil {
		return answer{text: err.Error()}
	}
	asked.Header.Set("X-Forwarded-For", r.from())
	if change != nil {
		change(asked.Header)
	}
	response, err := client.Do(asked)
	if err != nil {
		return answer{text: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	a := answer{status: response.StatusCode, header: response.Header}
	if a.header.Get("Content-Type") != "text/event-stream" { // which does not end
		text, _ := io.ReadAll(io.LimitReader(response.Body, answerBytes+1))
		a.text = string(text)
	}
	return a
}

// check says what is wrong with an answer.
func (who identity) check(one route, body string, a answer) (wrong string) {
	most := answerBytes
	if a.status >= 400 {
		if most = refusalBytes; who.letIn && one.kind == form {
			most += formGrowth * len(body)
		}
	}
	switch {
	case a.status == 0:
		return "there is no answer"
	case a.status >= 500 && (a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == ""):
		return "the server failed"
	case len(a.text) > most:
		return "the answer is too long"
	case !who.letIn && !one.open && a.status < 300:
		return "it is let in"
	case who.onA && strings.Contains(strings.ToLower(a.text), marker):
		return "it shows what is of another canvas"
	default:
		return ""
	}
}

// TestHostileRequestsAreRefused sends each body to each route as each identity.
func TestHostileRequestsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.seed()
	ofB, before := r.of(canvasB), r.memory("VmRSS")
	routes := slices.Concat(r.apiRoutes(), r.dashboardRoutes(), r.portRoutes())
	for _, who := range identities() {
		if who.letIn && !who.onA { // who may change canvas B, too
			if now := r.of(canvasB); now != ofB {
				t.Errorf("canvas B was changed: it is\n%s\nand was\n%s", now, ofB)
			}
		}
		statuses, shown := r.attack(who, routes)
		if who.letIn && !who.onA && shown == 0 {
			t.Error("no answer shows canvas B even to who may see it: nothing was tested")
		}
		t.Logf("%s: %v", who.name, statuses)
	}
	if most := r.memory("VmHWM"); most >= before+moreMiB {
		t.Errorf("the worker took %d MiB, and %d before", most, before)
	} else {
		t.Logf("%d requests; the worker took %d MiB, and %d before", r.sent.Load(), most, before)
	}
	r.checkLog()
}

// attack sends all requests as one identity, of four routes at once. It counts the answers by their status, and those that show
// canvas B.
func (r *rig) attack(who identity, routes []route) (statuses map[int]int, shown int) {
	var mu sync.Mutex
	count := func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		if statuses[a.status]++; strings.Contains(a.text, marker) {
			shown++
		}
	}
	statuses = map[int]int{}
	var wait sync.WaitGroup
	atOnce := make(chan struct{}, 4)
	for _, one := range routes {
		for some := range slices.Chunk(one.requests(), perCredentials) {
			header, value := who.credentials(r)
			atOnce <- struct{}{}
			wait.Go(func() {
				defer func() { <-atOnce }()
				for _, q := range some {
					count(r.attackWith(who, one, q, header, value))
				}
			})
		}
	}
	wait.Wait()
	return statuses, shown
}

// attackWith sends one request, and checks the answer.
func (r *rig) attackWith(who identity, one route, q request, header, value string) answer {
	a := r.ask(one.method, q.url, q.body, func(h http.Header) {
		h.Set("Content-Type", one.kind)
		h.Set(header, value)
		if one.header != nil {
			one.header(h, q.body)
		}
	})
	if wrong := who.check(one, q.body, a); wrong != "" {
		r.t.Errorf("%s: %s %.200s with %d bytes %.100q: %s: %d with %d bytes %.300q", who.name, one.method, q.url, len(q.body), q.body, wrong, a.status, len(a.text), a.text)
	}
	return a
}

// checkLog checks that the log of the worker is one that machines read, and small.
func (r *rig) checkLog() {
	r.t.Helper()
	log, err := os.ReadFile(r.worker.Log)
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		var entry struct{ Severity string }
		switch err := json.Unmarshal(line, &entry); {
		case err != nil || len(line) > logLineBytes || !strings.HasPrefix(string(line), "{"):
			r.t.Errorf("the log has a line of %d bytes (%v): %.300q", len(line), err, line)
		case entry.Severity != "INFO" && entry.Severity != "WARNING":
			r.t.Errorf("a request makes an alert: %.500s", line)
		}
	}
	if most := logBytesPerRequest * int(r.sent.Load()); len(log) > most {
		r.t.Errorf("the log has %d bytes for %d requests, want at most %d; it begins %.3000s", len(log), r.sent.Load(), most, log)
	}
	r.t.Logf("the log has %d bytes", len(log))
}
