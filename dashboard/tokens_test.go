package dashboard_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

var secretShown = regexp.MustCompile(access.Prefix + `[\w-]{43}`)

// A token is made, shown once, lets in, and is revoked, which ends what it has let in.
func TestTokenCanBeMadeAndRevoked(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := newBrowser(t, q.dashboard(dashboard.Config{Queue: q.queue(), Identify: as(access.Grant{Verbs: access.Verbs()})}))
	b.wants(b.get("/tokens"), 200, "There is no token", `value="read" checked`, `value="administer"`)
	made := b.post("/tokens", url.Values{"name": {`nights "1" &`}, "verb": {"read", "operate"}, "canvases": {seeded.Canvas.String() + "\r\n\r\n" + elsewhere.String()}, "days": {"30"}})
	b.wants(made, 200, "It is shown this once", "nights &#34;1&#34; &amp;", "data-copy")
	secret := secretShown.FindString(html.UnescapeString(made.Body.String()))
	who, err := q.tokens().Identify(testenv.Context(t), secret)
	if err != nil || !who.May(access.Operate, elsewhere) || who.MayAnywhere(access.Administer) || who.MayEverywhere(access.Read) {
		t.Fatalf("the token %q is of %+v: %v", secret, who, err)
	}
	if got := q.one(`SELECT (expires_at - now() BETWEEN interval '29 days' AND interval '31 days')::text || created_by FROM access_tokens`); got != "truetest:ada" {
		t.Errorf("the token is %s", got)
	}
	list := b.get("/tokens")
	b.wants(list, 200, "nights &#34;1&#34; &amp;", "read, operate", "valid")
	if secretShown.MatchString(list.Body.String()) {
		t.Error("the secret is shown again")
	}
	id := q.one(`SELECT id::text FROM access_tokens`)
	b.leads(b.post("/tokens/"+id+"/revoke", nil), "/tokens")
	b.wants(b.get("/tokens"), 200, "is revoked and no longer valid", "revoked")
	b.leads(b.post("/tokens/"+id+"/revoke", nil), "/tokens")
	b.wants(b.get("/tokens"), 200, "was revoked before")
	if _, err := q.tokens().Identify(testenv.Context(t), secret); err == nil {
		t.Error("the token still lets in")
	}
	if q.audited("create_token") != "1" || q.audited("revoke_token") != "1" {
		t.Error("the audit log lacks a row")
	}
}

// Whoever administers a canvas sees and makes tokens of it, with what they may do themselves, and no others.
func TestTokensOfOthersAreOutOfReach(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	everywhere, _ := q.token("everywhere", access.Grant{Verbs: access.Verbs()})
	both, _ := q.token("both", access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas, elsewhere}, Verbs: []access.Verb{access.Read}})
	own, _ := q.token("own", access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: access.Verbs()})
	b := q.steering(access.Read, access.Administer)
	page := b.get("/tokens")
	b.wants(page, 200, "own", seeded.Canvas.String()+"</textarea>")
	if body := mainPart(page.Body.String()); strings.Contains(body, "everywhere") || strings.Contains(body, "both") || strings.Contains(body, `value="operate"`) {
		t.Errorf("it shows what it should not: %s", body)
	}
	canvas := seeded.Canvas.String()
	for want, form := range map[string]url.Values{
		"A token cannot do more than who makes it":      {"name": {"x"}, "verb": {"read", "operate"}, "canvases": {canvas}},
		"You lack the verb administer on some of these": {"name": {"x"}, "verb": {"read"}, "canvases": {canvas + "\n" + elsewhere.String()}},
		"name those that you administer":                {"name": {"x"}, "verb": {"read"}},
		"is no canvas":                                  {"name": {"x"}, "verb": {"read"}, "canvases": {script}},
		"verbs: there is none":                          {"name": {"x"}, "canvases": {canvas}},
		"is unknown":                                    {"name": {"x"}, "verb": {"everything"}, "canvases": {canvas}},
		"name: is missing":                              {"verb": {"read"}, "canvases": {canvas}},
		"only controls":                                 {"name": {"a\x1b"}, "verb": {"read"}, "canvases": {canvas}},
		"the limit is 100":                              {"name": {strings.Repeat("x", 101)}, "verb": {"read"}, "canvases": {canvas}},
		"Choose how long":                               {"name": {"x"}, "verb": {"read"}, "canvases": {canvas}, "days": {"1000000"}},
	} {
		w := b.post("/tokens", form)
		b.wants(w, http.StatusUnprocessableEntity, want, `role="alert"`)
		if secretShown.MatchString(w.Body.String()) {
			t.Error("there is a secret")
		}
	}
	for _, id := range []string{everywhere.ID.String(), both.ID.String(), "x", "0197a3c1-8a52-4bd0-9a5e-2f1c4a9d7e10"} {
		b.wants(b.post("/tokens/"+id+"/revoke", nil), http.StatusNotFound)
	}
	for _, less := range []*browser{q.steering(access.Read, access.ReadValues, access.Emit, access.Operate)} {
		less.wants(less.get("/tokens"), http.StatusForbidden)
		less.wants(less.post("/tokens", url.Values{"name": {"x"}, "verb": {"read"}, "canvases": {canvas}}), http.StatusForbidden)
		less.wants(less.post("/tokens/"+own.ID.String()+"/revoke", nil), http.StatusForbidden)
		if strings.Contains(less.get("/").Body.String(), "/tokens") {
			t.Error("there is a link to the tokens")
		}
	}
	shows := newBrowser(t, q.dashboard(dashboard.Config{}))
	if page := mainPart(shows.get("/tokens").Body.String()); strings.Contains(page, "<button") {
		t.Errorf("a dashboard that only shows has a button: %s", page)
	}
	shows.wants(shows.post("/tokens", url.Values{"name": {"x"}, "verb": {"read"}}), http.StatusForbidden)
	if n := q.one(`SELECT count(*) FILTER (WHERE revoked_at IS NULL)::text FROM access_tokens`); n != "3" {
		t.Errorf("%s tokens are valid, want 3", n)
	}
	b.wants(b.post("/tokens", url.Values{"name": {"x"}, "verb": {"read"}, "canvases": {canvas}}), 200, "It is shown this once")
	b.leads(b.post("/tokens/"+own.ID.String()+"/revoke", nil), "/tokens")
}

// A token that is made on the page ends no later than what its maker came in with, also if no time is chosen.
func TestTokensEndWithTheLoginOfTheirMaker(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	b := newBrowser(t, q.dashboard(dashboard.Config{Queue: q.queue(), Identify: func(*http.Request) (access.Identity, error) {
		return access.Identity{Name: "test:ada", Key: "ada", Grants: []access.Grant{{Verbs: access.Verbs()}}, EndsIn: 36 * time.Hour}, nil
	}}))
	page := b.get("/tokens")
	b.wants(page, 200, `<option value="1">1 day</option>`, "as long as a token of yours may be")
	if strings.Contains(page.Body.String(), "until it is revoked") || strings.Contains(page.Body.String(), `value="30"`) {
		t.Error("the page offers what is refused")
	}
	b.wants(b.post("/tokens", url.Values{"name": {"x"}, "verb": {"read"}, "days": {"365"}}), http.StatusUnprocessableEntity, "cannot be valid for longer")
	b.wants(b.post("/tokens", url.Values{"name": {"x"}, "verb": {"read"}}), 200, "It is shown this once")
	if got := q.one(`SELECT count(*) || ' ' || bool_and(expires_at - created_at BETWEEN interval '35 hours' AND interval '37 hours') FROM access_tokens`); got != "1 true" {
		t.Errorf("the tokens are %s", got)
	}
}
