package dashboard_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// served is a dashboard on a server.
func served(t *testing.T, handler *dashboard.Handler) *httptest.Server {
	t.Helper()
	return servedWithin(t, handler, 0)
}

// servedWithin is a dashboard on a server that gives each request so much time; 0 is no bound.
func servedWithin(t *testing.T, handler *dashboard.Handler, limit time.Duration) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ReadTimeout, server.Config.WriteTimeout = limit, limit
	server.Start()
	t.Cleanup(func() { handler.Close(); server.Close() })
	return server
}

// watching reads a stream.
type watching struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
}

// watch opens a stream, with a session if there is one.
func watch(t *testing.T, server *httptest.Server, path string, cookies ...*http.Cookie) *watching {
	t.Helper()
	request, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range cookies {
		request.AddCookie(cookie)
	}
	response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return &watching{t, response, lines}
}

// next returns the next event, and an empty text when the stream has ended.
func (w *watching) next() (html string) {
	w.t.Helper()
	for w.lines.Scan() {
		switch line := w.lines.Text(); {
		case strings.HasPrefix(line, "data: "):
			html += strings.TrimPrefix(line, "data: ") + "\n"
		case line == "" && html != "":
			return html
		}
	}
	return ""
}

// A page that is looked at gets what is new, for longer than the server gives a request, with links below the prefix.
func TestStreamSendsNewEvents(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	const limit = 3 * time.Second // which a busy machine does not need before the stream begins
	server := servedWithin(t, q.dashboard(dashboard.Config{Prefix: "/admin/queue", Refresh: 10 * time.Millisecond}), limit)
	w := watch(t, server, "/admin/queue/live")
	if kind := w.response.Header.Get("Content-Type"); w.response.StatusCode != http.StatusOK || kind != "text/event-stream" || w.response.Header.Get("Content-Security-Policy") == "" {
		t.Fatalf("status %d, %v", w.response.StatusCode, w.response.Header)
	}
	for i, began := 1, time.Now(); i <= 3 || time.Since(began) <= limit; i++ {
		event := w.next()
		if event == "" {
			t.Fatalf("the stream has ended after %d events: %v", i-1, w.lines.Err())
		}
		if i == 1 && (!strings.Contains(event, `href="/admin/queue/`) || strings.Contains(event, `"/events`) || inline.MatchString(event)) {
			t.Errorf("the event has links beside the prefix, or what the policy refuses: %s", event)
		}
		// The last pending count is of the newest minute.
		q.exec(`UPDATE event_minutes SET pending = $1, emitted = emitted + 1 WHERE name = 'send_invoice' AND minute = (SELECT max(minute) FROM event_minutes)`, 1000*i)
	}
}

// A stream has what its viewer may read.
func TestStreamShowsOneCanvas(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	of := func(canvas eventqueue.CanvasID, path string) *watching {
		grant := access.Grant{Canvases: []eventqueue.CanvasID{canvas}, Verbs: []access.Verb{access.Read}}
		return watch(t, served(t, q.dashboard(dashboard.Config{Identify: as(grant)})), path)
	}
	if event := of(seeded.Canvas, "/live").next(); !strings.Contains(event, "What needs attention") || strings.Contains(event, "See the workers") {
		t.Errorf("the canvas: %s", event)
	}
	if event := of(elsewhere, "/live").next(); !strings.Contains(event, "Nothing was counted") {
		t.Errorf("another canvas: %s", event)
	}
	if w := of(elsewhere, "/live?canvas="+seeded.Canvas.String()); w.response.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", w.response.StatusCode)
	}
}

// A stream takes a session, and ends when its viewer logs out; others go on.
func TestStreamEndsWithItsSession(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	_, secret := q.token("nights", access.Grant{Verbs: access.Verbs()})
	handler := q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}, Refresh: 10 * time.Millisecond})
	server := served(t, handler)
	if w := watch(t, server, "/live"); w.response.StatusCode != http.StatusSeeOther {
		t.Errorf("without a session: status %d", w.response.StatusCode)
	}
	login := func() (*browser, *watching) {
		b := newBrowser(t, handler)
		b.leads(b.post("/login", url.Values{"token": {secret}}), "/")
		var cookies []*http.Cookie
		for _, cookie := range b.cookies {
			cookies = append(cookies, cookie)
		}
		w := watch(t, server, "/live", cookies...)
		if w.next() == "" {
			t.Fatal("the stream has nothing")
		}
		return b, w
	}
	b, left := login()
	_, stays := login()
	b.leads(b.post("/logout", nil), "/login")
	if _, err := io.Copy(io.Discard, left.response.Body); err != nil { // it may bring a last change, and ends
		t.Error(err)
	}
	q.exec(`UPDATE event_minutes SET pending = 7777`)
	if event := stays.next(); !strings.Contains(event, "23,331") {
		t.Errorf("the other one gets %s", event)
	}
}

// Streams hold up no stop.
func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	handler := q.dashboard(dashboard.Config{})
	server := served(t, handler)
	w := watch(t, server, "/live")
	if w.next() == "" {
		t.Fatal("the stream has nothing")
	}
	handler.Close()
	ctx, cancel := context.WithTimeout(testenv.Context(t), time.Minute)
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if event := w.next(); event != "" {
		t.Errorf("the stream goes on with %s", event)
	}
	if w := get(t, handler, "/live"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("another one begins: status %d", w.Code)
	}
	if w := get(t, handler, "/"); w.Code != http.StatusOK {
		t.Errorf("the page: status %d", w.Code)
	}
}

// A stream lasts no longer than the credentials of its viewer, such as a JWT of some minutes.
func TestStreamEndsWithItsJWT(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	pages := q.dashboard(dashboard.Config{Identify: func(*http.Request) (access.Identity, error) {
		return access.Identity{Name: "oidc:ada", Grants: []access.Grant{{Verbs: access.Verbs()}}, Key: "ada", EndsIn: time.Second}, nil
	}})
	if _, err := io.ReadAll(watch(t, served(t, pages), "/live").response.Body); err != nil {
		t.Error(err)
	}
}
