package dashboard_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/test/testenv"
)

var elsewhere = eventqueue.CanvasID{7, 8: 0x80, 15: 2}

// browser keeps the cookies of a dashboard.
type browser struct {
	t       *testing.T
	handler http.Handler
	cookies map[string]*http.Cookie
}

func newBrowser(t *testing.T, handler http.Handler) *browser {
	t.Helper()
	return &browser{t, handler, map[string]*http.Cookie{}}
}

func (b *browser) do(r *http.Request) *httptest.ResponseRecorder {
	b.t.Helper()
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		} else {
			b.cookies[cookie.Name] = cookie
		}
	}
	return w
}

func (b *browser) get(path string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.do(httptest.NewRequestWithContext(testenv.Context(b.t), http.MethodGet, path, http.NoBody))
}

// post sends a form as a page of the dashboard does.
func (b *browser) post(path string, fields url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.do(formRequest(testenv.Context(b.t), path, fields))
}

func formRequest(ctx context.Context, path string, fields url.Values) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(fields.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

// wants checks a page.
func (b *browser) wants(w *httptest.ResponseRecorder, status int, texts ...string) {
	b.t.Helper()
	if w.Code != status {
		b.t.Errorf("status %d, want %d: %.2000s", w.Code, status, w.Body)
	}
	for _, text := range texts {
		if !strings.Contains(w.Body.String(), text) {
			b.t.Errorf("the page lacks %q:\n%.4000s", text, w.Body)
		}
	}
}

// leads checks that a request leads to a path.
func (b *browser) leads(w *httptest.ResponseRecorder, path string) {
	b.t.Helper()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != path {
		b.t.Errorf("status %d to %q, want %q: %.2000s", w.Code, w.Header().Get("Location"), path, w.Body)
	}
}

func (q *queue) token(name string, grant access.Grant) (access.Token, string) {
	q.t.Helper()
	token, secret, err := q.tokens().Create(testenv.Context(q.t), audit.Actor{Name: "os:test", Via: "test"}, access.NewToken{Name: name, Grant: grant})
	if err != nil {
		q.t.Fatal(err)
	}
	return token, secret
}

func (q *queue) tokens() *access.Tokens { return access.NewTokens("", q.store.Pool()) }

// A database that does not answer is said to be the cause, within the time that a page may take.
func TestHangingDatabaseIsReportedInTime(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, secret := q.token("nights", access.Grant{Verbs: []access.Verb{access.Read}})
	handler := q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}, Timeout: 100 * time.Millisecond})
	patient := newBrowser(t, q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}, SessionKey: make([]byte, 32), Timeout: time.Minute}))
	patient.leads(patient.post("/login", url.Values{"token": {secret}}), "/")

	ctx := testenv.Context(t)
	tx, err := q.store.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `LOCK TABLE access_tokens`); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, handler)
	b.wants(b.post("/login", url.Values{"token": {secret}}), http.StatusServiceUnavailable, "could not be read")
	bearer := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	bearer.Header.Set("Authorization", "Bearer "+secret)
	b.wants(b.do(bearer), http.StatusServiceUnavailable, "could not be found out who you are")
	patient.handler = q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}, SessionKey: make([]byte, 32), Timeout: 100 * time.Millisecond})
	patient.wants(patient.get("/"), http.StatusServiceUnavailable, "could not be found out who you are")
}

// A token lets in by a session, until that is left or the token is revoked.
func TestLogInAdmitsUntilTokenOrSessionEnds(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	token, secret := q.token("nights", access.Grant{Verbs: []access.Verb{access.Read}})
	_, mute := q.token("emitter", access.Grant{Verbs: []access.Verb{access.Emit}})
	b := newBrowser(t, q.dashboard(dashboard.Config{Prefix: "/q", Access: &access.Authenticator{Tokens: q.tokens()}}))
	b.leads(b.get("/q/"), "/q/login")
	b.leads(b.get("/q/events?state=failed"), "/q/login?next=%2Fevents%3Fstate%3Dfailed")
	b.wants(b.get("/q/login?next=/events"), 200, `name="next" value="/events"`, `type="password"`)
	b.wants(b.get("/q/assets/style.css"), 200)
	for _, wrong := range []string{"", "evt_x", access.Prefix + strings.Repeat("A", 43), script, strings.Repeat("x", 1<<10)} {
		b.wants(b.post("/q/login", url.Values{"token": {wrong}}), http.StatusUnauthorized, "This token is not valid")
	}
	b.wants(b.post("/q/login", url.Values{"token": {mute}}), http.StatusForbidden, "verb read")
	if len(b.cookies) != 0 {
		t.Fatalf("a session was set: %v", b.cookies)
	}
	b.leads(b.post("/q/login", url.Values{"token": {" " + secret + "\n"}, "next": {"/events?state=failed"}}), "/q/events?state=failed")
	if len(b.cookies) != 1 {
		t.Fatalf("the cookies are %v", b.cookies)
	}
	for _, cookie := range b.cookies {
		if !cookie.HttpOnly || cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 12*3600 || strings.Contains(cookie.Value, secret) {
			t.Fatalf("the cookie is %+v", cookie)
		}
	}
	b.wants(b.get("/q/events?state=failed"), 200, "charge_card", "token:nights", "Log out")
	b.leads(b.post("/q/logout", nil), "/q/login")
	b.leads(b.get("/q/"), "/q/login")
	for next, want := range map[string]string{"//evil.example": "/q/", "https://evil.example/": "/q/", `/\evil.example`: "/q/", "evil": "/q/", "/failed": "/q/failed"} {
		b.leads(b.post("/q/login", url.Values{"token": {secret}, "next": {next}}), want)
	}
	b.wants(b.get("/q/"), 200)
	if _, err := q.tokens().Revoke(testenv.Context(t), audit.Actor{Name: "os:test", Via: "test"}, token.ID); err != nil {
		t.Fatal(err)
	}
	b.leads(b.get("/q/failed"), "/q/login?next=%2Ffailed")
	if len(b.cookies) != 0 {
		t.Errorf("the session of a revoked token is still there: %v", b.cookies)
	}
}

// Whoever has kept the cookie of a session that was logged out gets nowhere with it, in no program with the same key.
func TestLogOutEndsTheSession(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	_, secret := q.token("nights", access.Grant{Verbs: access.Verbs()})
	config := dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}, SessionKey: []byte(strings.Repeat("k", access.MinSessionKeyBytes)), Queue: q.queue()}
	pages, elsewhere := q.dashboard(config), q.dashboard(config)
	b := newBrowser(t, pages)
	b.leads(b.post("/login", url.Values{"token": {secret}}), "/")
	kept := maps.Clone(b.cookies)
	thief, there := &browser{t, pages, kept}, &browser{t, elsewhere, maps.Clone(kept)}
	there.wants(there.get("/workers"), 200)
	b.leads(b.post("/logout", nil), "/login")
	for _, theirs := range []*browser{thief, there} {
		theirs.cookies = maps.Clone(kept)
		theirs.wants(theirs.post("/handler/pause", handlerForm(seeded)), http.StatusUnauthorized, "Nothing was changed")
		theirs.cookies = maps.Clone(kept)
		theirs.leads(theirs.get("/workers"), "/login?next=%2Fworkers")
		theirs.cookies = maps.Clone(kept)
		theirs.leads(theirs.post("/logout", nil), "/login")
	}
}

// Log-outs of one session are limited, and another holder of its token keeps nobody from logging out.
func TestLogOutIsLimitedBySession(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, secret := q.token("nights", access.Grant{Verbs: []access.Verb{access.Read}})
	pages := q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}, ChangesPerSecond: 0.001})
	first, second := newBrowser(t, pages), newBrowser(t, pages)
	for _, b := range []*browser{first, second} {
		b.leads(b.post("/login", url.Values{"token": {secret}}), "/")
	}
	kept := maps.Clone(first.cookies)
	first.leads(first.post("/logout", nil), "/login")
	first.cookies = kept
	first.wants(first.post("/logout", nil), http.StatusTooManyRequests, "Wait a moment")
	second.leads(second.post("/logout", nil), "/login")
	if n := q.one(`SELECT count(*)::text FROM ended_sessions`); n != "2" {
		t.Errorf("%s sessions were ended", n)
	}
}

// A user at a shared machine is logged out there, whatever the database does, and learns what was not done.
func TestLogOutRemovesTheCookieWithoutADatabase(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, secret := q.token("nights", access.Grant{Verbs: []access.Verb{access.Read}})
	b := newBrowser(t, q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}}))
	b.leads(b.post("/login", url.Values{"token": {secret}}), "/")
	q.exec(`ALTER TABLE ended_sessions RENAME TO gone`)
	b.wants(b.post("/logout", nil), http.StatusServiceUnavailable, "logged out of this browser only", " UTC, when it ends by itself")
	if len(b.cookies) != 0 {
		t.Errorf("the browser keeps %v", b.cookies)
	}
}

// Another page of the web cannot log a user in or out, or change anything.
func TestOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, secret := q.token("nights", access.Grant{Verbs: access.Verbs()})
	b := newBrowser(t, q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}}))
	own := formRequest(testenv.Context(t), "/login", url.Values{"token": {secret}}) // as of a browser without TLS
	own.Header.Del("Sec-Fetch-Site")
	own.Header.Set("Origin", "http://"+own.Host)
	b.leads(b.do(own), "/")
	for _, path := range []string{"/login", "/logout"} {
		r := formRequest(testenv.Context(t), path, url.Values{"token": {secret}})
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		b.wants(b.do(r), http.StatusForbidden)
		r = formRequest(testenv.Context(t), path, url.Values{"token": {secret}})
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", "https://evil.example")
		b.wants(b.do(r), http.StatusForbidden, "Nothing was changed.", "https://evil.example", "let the proxy pass Host on")
	}
}

// Who tries tokens by the thousand waits.
func TestLogInIsLimited(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	b := newBrowser(t, q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}}))
	_, secret := q.token("nights", access.Grant{Verbs: []access.Verb{access.Read}})
	b.leads(b.post("/login", url.Values{"token": {secret}}), "/")
	header := func(token string) int {
		r := httptest.NewRequestWithContext(testenv.Context(t), http.MethodGet, "/workers", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		return w.Code
	}
	for name, try := range map[string]func() int{
		"log in": func() int { return b.post("/login", url.Values{"token": {"evt_wrong"}}).Code },
		"header": func() int { return header("evt_wrong") },
	} {
		tries := 0
		for try() != http.StatusTooManyRequests {
			if tries++; tries == 1000 {
				t.Fatalf("%s: a thousand wrong tokens were looked up", name)
			}
		}
		// Who was let in before is not kept out, and who has a session is not asked.
		b.leads(b.post("/login", url.Values{"token": {secret}}), "/")
		b.wants(b.get("/workers"), 200)
	}
}

// Whoever may read one canvas sees nothing of another, and a header is as good as a session.
func TestViewerSeesNoOtherCanvas(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	_, own := q.token("theirs", access.Grant{Canvases: []eventqueue.CanvasID{elsewhere}, Verbs: access.Verbs()})
	pages := q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}})
	theirs := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(testenv.Context(t), http.MethodGet, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+own)
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		return w
	}
	for _, path := range []string{"/", "/handlers", "/events", "/events?state=failed", "/events?id=900001", "/failed"} {
		w := theirs(path)
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
		}
		for _, secret := range []string{seeded.Name, "charge_card", "card #", "The bank is down", seeded.Canvas.String()} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s shows %q of another canvas", path, secret)
			}
		}
	}
	for path, status := range map[string]int{"/events?canvas=" + seeded.Canvas.String(): 403, "/handlers?canvas=" + seeded.Canvas.String(): 403, "/workers": 403} {
		if w := theirs(path); w.Code != status {
			t.Errorf("%s: status %d, want %d", path, w.Code, status)
		}
	}
	of, missing := theirs("/events/900001"), theirs("/events/900999")
	if of.Code != http.StatusNotFound || missing.Code != http.StatusNotFound || withoutTimes(of.Body.String()) != strings.ReplaceAll(withoutTimes(missing.Body.String()), "900999", "900001") {
		t.Errorf("another canvas' event is answered with %d %s, and one that does not exist with %d %s", of.Code, of.Body, missing.Code, missing.Body)
	}
	if w := send(testenv.Context(t), pages, http.MethodGet, "/events/900001"); w.Code != http.StatusSeeOther {
		t.Errorf("nobody is answered with %d", w.Code)
	}
}

// withoutTimes is a page up to the time that it is of.
func withoutTimes(page string) string { before, _, _ := strings.Cut(page, "<footer>"); return before }

// Who may read two canvases sees one at a time, and chooses.
func TestViewerChoosesACanvas(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	grant := access.Grant{Canvases: []eventqueue.CanvasID{elsewhere, seeded.Canvas}, Verbs: []access.Verb{access.Read}}
	b := newBrowser(t, q.dashboard(dashboard.Config{Identify: as(grant)}))
	first := b.get("/failed")
	b.wants(first, 200, `" selected>`+elsewhere.String(), `">`+seeded.Canvas.String(), "Nothing has failed")
	b.wants(b.get("/failed?canvas="+seeded.Canvas.String()), 200, "charge_card", `href="/handlers?canvas=`+seeded.Canvas.String()+`"`)
}

// Who is let in by the application is let in, and who is not is told so.
func TestApplicationMayUseItsOwnLogin(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := newBrowser(t, q.dashboard(dashboard.Config{Identify: func(r *http.Request) (access.Identity, error) {
		switch r.Header.Get("X-User") {
		case "ada":
			return access.Identity{Name: "app:ada", Grants: []access.Grant{{Verbs: []access.Verb{access.Read}}}}, nil
		case "eve":
			return access.Identity{Name: "app:eve"}, nil
		default:
			return access.Identity{}, access.ErrNoCredentials
		}
	}}))
	for user, want := range map[string]int{"ada": 200, "eve": 403, "": 401} {
		r := httptest.NewRequestWithContext(testenv.Context(t), http.MethodGet, "/", http.NoBody)
		r.Header.Set("X-User", user)
		b.wants(b.do(r), want)
	}
	b.wants(b.get("/login"), http.StatusUnauthorized)
}

func TestInvalidConfigIsRefused(t *testing.T) {
	t.Parallel()
	store := newQueue(t).store
	identify := as()
	for want, c := range map[string]dashboard.Config{
		"Store":    {Identify: identify},
		"Timeout":  {Store: store, Timeout: -1, Identify: identify},
		"Prefix":   {Store: store, Prefix: "admin", Identify: identify},
		"either":   {Store: store},
		"16 bytes": {Store: store, SessionKey: make([]byte, 16), Access: &access.Authenticator{Tokens: access.NewTokens("", store.Pool())}},
	} {
		if _, err := dashboard.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
