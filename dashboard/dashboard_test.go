package dashboard_test

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// Stored texts that would do harm if they were not escaped.
const (
	script   = `<script>alert("stored")</script>`
	reversed = "\u202egnp.exe"
	hostile  = script + reversed + "\x1b[2J"
)

var seeded = eventqueue.Scope{Canvas: eventqueue.CanvasID{6, 8: 0x80, 15: 1}, Module: "WORKER", Name: "send_invoice"}

// queue is a database with events in most states, and its dashboard.
type queue struct {
	t     *testing.T
	store *pgstore.Store
	ids   []eventqueue.EventID
}

func (q *queue) exec(sql string, args ...any) {
	q.t.Helper()
	if _, err := q.store.Pool().Exec(testenv.Context(q.t), sql, args...); err != nil {
		q.t.Fatal(err)
	}
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	return &queue{t: t, store: pgstore.New(testenv.Pool(t))}
}

func (q *queue) insert(events ...eventqueue.NewEvent) {
	q.t.Helper()
	inserted, err := q.store.Insert(testenv.Context(q.t), nil, events, eventqueue.NotifyModeLater)
	if err != nil {
		q.t.Fatal(err)
	}
	for _, row := range inserted {
		q.ids = append(q.ids, row.ID)
	}
}

// seed fills the queue: what waits, what failed, counts, a pause and workers.
func (q *queue) seed() *queue {
	q.t.Helper()
	ctx, long := testenv.Context(q.t), `{"line":"`+strings.Repeat("x", 256<<10)+`"}`
	event := func(value string) eventqueue.NewEvent {
		return eventqueue.NewEvent{Canvas: seeded.Canvas, Module: seeded.Module, Name: seeded.Name, Modifier: "_", Value: []byte(value),
			Attributes: map[string]string{"customer": script}}
	}
	q.insert(event(`{"text":"<script>alert(\"stored\")</script>`+"\u202e"+`gnp.exe"}`), event(long), event(`{"customer":"Ada","cents":4200}`))
	q.exec(`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error)
		VALUES ($1, 1, $2, now() - interval '3 minutes', '1.2 seconds', $3)`, q.ids[0], [16]byte(seeded.Canvas), hostile)
	q.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
		SELECT 900000 + i, $1, $2, 'charge_card', '_', '{}', 'FAILED', 3, 4, 'card ' || i || ' was refused: ' || $3, now() - interval '1 hour' FROM generate_series(1, 60) AS i`,
		[16]byte(seeded.Canvas), seeded.Module, hostile)
	rule := operate.RuleOf(operate.PauseRule, eventqueue.Scope{Canvas: seeded.Canvas, Module: "WORKER", Name: "held"})
	rule.Reason, rule.Actor = "The bank is down. "+script, "ada"
	if _, err := q.store.AddRule(ctx, rule); err != nil {
		q.t.Fatal(err)
	}
	q.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, waits, runs, pending, oldest_due)
		SELECT date_trunc('minute', now()) - i * interval '1 minute', $1, $2, n, 120 + 40 * sin(i / 6.0), 110 + 35 * sin(i / 6.0 - 1), i % 17 / 15, i % 5,
		    ARRAY[20, 30, 40, 20, 5, 2, 1], ARRAY[1, 2, 9, 30, 40, 9, 3], 40 + 30 * cos(i / 9.0), interval '12 minutes'
		FROM generate_series(0, 59) AS i, unnest(ARRAY['send_invoice', 'charge_card', 'render_report']) AS n`, [16]byte(seeded.Canvas), seeded.Module)
	q.exec(`INSERT INTO event_workers (number, host, pid, version, handlers, stopped_at) VALUES (7, $1, 4711, 'v2.3.1', '[]', now())`, "worker-7"+script)
	return q
}

// dashboard makes a dashboard for whoever may do everything, unless the Config says who comes in.
func (q *queue) dashboard(c dashboard.Config) *dashboard.Handler {
	q.t.Helper()
	c.Store, c.Log = q.store, testenv.Logger(q.t)
	if c.ChangesPerSecond == 0 {
		c.ChangesPerSecond = 1e6 // a test is faster than a person
	}
	if c.Identify == nil && c.Access == nil {
		c.Identify = as(access.Grant{Verbs: access.Verbs()})
	}
	handler, err := dashboard.New(c)
	if err != nil {
		q.t.Fatal(err)
	}
	return handler
}

// as lets everybody in as ada, with a grant.
func as(grants ...access.Grant) func(*http.Request) (access.Identity, error) {
	return func(*http.Request) (access.Identity, error) {
		return access.Identity{Name: "test:ada", Grants: grants, Key: "ada"}, nil
	}
}

func get(t *testing.T, handler http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	return send(testenv.Context(t), handler, http.MethodGet, path)
}

func send(ctx context.Context, handler http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, http.NoBody))
	return w
}

// inline is script or style that the policy would refuse.
var inline = regexp.MustCompile(`(?i)<script(>|\s+[^s])|<style|\sstyle=|\son[a-z]+=|javascript:`)

// Every page shows what is stored, escaped, in bounded size, and nothing that its policy refuses.
func TestPagesShowHostileTextsAsText(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	pages := q.dashboard(dashboard.Config{})
	for _, test := range []struct{ path, want string }{
		{"/", "The oldest event that may run has been due for 12m0s"},
		{"/", "No worker is connected"},
		{"/handlers", "The bank is down."},
		{"/events", "send_invoice"},
		{"/events?state=waiting&module=WORKER&name=send_invoice", "/events/" + q.ids[2].String()},
		{"/events?state=failed", `rel="next"`},
		{"/events?id=900001", "/events/900001"},
		{"/events/" + q.ids[0].String(), "&lt;script&gt;alert("},
		{"/events/" + q.ids[1].String(), "This is the beginning of 262"},
		{"/events/" + q.ids[2].String(), "&#34;cents&#34;: 4200"},
		{"/events/900001", "charge_card"},
		{"/failed", "card # was refused"},
		{"/workers", "worker-7&lt;script&gt;"},
	} {
		w := get(t, pages, test.path)
		body := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(body, test.want) {
			t.Errorf("%s: status %d, without %q:\n%.3000s", test.path, w.Code, test.want, body)
		}
		if found := inline.FindString(body); found != "" || strings.ContainsAny(body, "\u202e\x1b") {
			t.Errorf("%s has %q, or a character that is not printable", test.path, found)
		}
		if len(body) > 200<<10 {
			t.Errorf("%s has %d bytes", test.path, len(body))
		}
	}
}

// Every answer has the headers, also a refused one.
func TestEveryAnswerHasThePolicy(t *testing.T) {
	t.Parallel()
	pages := newQueue(t).dashboard(dashboard.Config{})
	for path, status := range map[string]int{"/": 200, "/assets/style.css": 200, "/assets/script.js": 200, "/nothing": 404, "/events/7": 404,
		"/events/x": 400, "/events?canvas=x": 400, "/events?state=tired": 400, "/events?name=%00": 400, "/events?attribute=x": 400, "/events?after=-1": 400} {
		w := get(t, pages, path)
		if w.Code != status {
			t.Errorf("%s: status %d, want %d", path, w.Code, status)
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if h := w.Header(); h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if w := send(testenv.Context(t), pages, method, "/events"); w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Body.String(), "Back to the overview") {
			t.Errorf("%s: status %d: %s", method, w.Code, w.Body)
		}
	}
	if page := get(t, pages, "/nothing").Body.String(); !strings.Contains(page, "There is no such page") || !strings.Contains(page, "Back to the overview") {
		t.Errorf("a page that is not there: %s", page)
	}
}

// An empty database says what to do first.
func TestEmptyDatabaseShowsTheFirstSteps(t *testing.T) {
	t.Parallel()
	pages := newQueue(t).dashboard(dashboard.Config{})
	for path, want := range map[string]string{"/": "eventctl emit", "/handlers": "Start a worker", "/events": "Nothing that has not ended matches",
		"/failed": "Nothing has failed", "/workers": "Start cmd/worker"} {
		if body := get(t, pages, path).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s does not say %q:\n%s", path, want, body)
		}
	}
}

// Below a prefix every link stays below it, and values are hidden from those who may not read them.
func TestMountedBelowAPrefixWithoutValues(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	pages := q.dashboard(dashboard.Config{Prefix: "/admin/queue/", Identify: as(access.Grant{Verbs: []access.Verb{access.Read}})})
	links, value := regexp.MustCompile(`(?:href|src|action)="(/[^"]*)"`), regexp.MustCompile(`\b4200\b`) // times may have these digits, too
	for _, path := range []string{"", "/", "/handlers", "/events", "/failed", "/workers", "/events/" + q.ids[2].String()} {
		w := get(t, pages, "/admin/queue"+path)
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
		}
		found := links.FindAllStringSubmatch(w.Body.String(), -1)
		if len(found) < 5 {
			t.Errorf("%s has %d links", path, len(found))
		}
		for _, link := range found {
			if !strings.HasPrefix(link[1], "/admin/queue/") {
				t.Errorf("%s links to %s", path, link[1])
			}
		}
		if value.MatchString(w.Body.String()) {
			t.Errorf("%s shows a value", path)
		}
	}
}

// The next page goes on where the one before it ended, and leaves nothing out.
func TestPagesOfEvents(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	pages := q.dashboard(dashboard.Config{})
	rows := regexp.MustCompile(`<a href="/events/(\d+)">`)
	seen := map[string]bool{}
	for path := "/events?state=failed"; path != ""; {
		body := get(t, pages, path).Body.String()
		for _, row := range rows.FindAllStringSubmatch(body, -1) {
			if seen[row[1]] {
				t.Errorf("event %s is on two pages", row[1])
			}
			seen[row[1]] = true
		}
		path = nextPage(body)
	}
	if len(seen) != 60 {
		t.Errorf("the pages have %d events, want 60", len(seen))
	}
}

var next = regexp.MustCompile(`href="([^"]*)" rel="next"`)

// nextPage returns the address of the page after one, or nothing.
func nextPage(body string) string {
	if found := next.FindStringSubmatch(body); found != nil {
		return html.UnescapeString(found[1])
	}
	return ""
}
