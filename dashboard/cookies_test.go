package dashboard_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/test/testenv"
)

// cookiesOf returns the cookies of a login to a dashboard, over TLS or not.
func cookiesOf(t *testing.T, pages http.Handler, prefix, secret string, secure bool) []*http.Cookie {
	t.Helper()
	r := formRequest(testenv.Context(t), prefix+"/login", url.Values{"token": {secret}})
	if secure {
		r.Header.Set("X-Forwarded-Proto", "https")
	}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("status %d with the cookies %v", w.Code, cookies)
	}
	return cookies
}

// letsIn reports whether a dashboard shows a page to who has some cookies.
func letsIn(t *testing.T, pages http.Handler, path string, secure bool, cookies ...*http.Cookie) bool {
	t.Helper()
	r := httptest.NewRequestWithContext(testenv.Context(t), http.MethodGet, path, http.NoBody)
	if secure {
		r.Header.Set("X-Forwarded-Proto", "https")
	}
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	if w.Code != http.StatusOK && w.Code != http.StatusSeeOther {
		t.Errorf("status %d", w.Code)
	}
	return w.Code == http.StatusOK
}

// Over TLS, only a cookie counts that no other host of the domain can set, and nobody who is between browser and server.
func TestCookiesOverTLSBelongToOneHost(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, secret := q.token("nights", access.Grant{Verbs: access.Verbs()})
	pages := q.dashboard(dashboard.Config{Prefix: "/q", Access: &access.Authenticator{Tokens: q.tokens()}})
	secure, plain := cookiesOf(t, pages, "/q", secret, true)[0], cookiesOf(t, pages, "/q", secret, false)[0]
	if !strings.HasPrefix(secure.Name, "__Host-") || !secure.Secure || secure.Path != "/" || secure.Domain != "" {
		t.Errorf("over TLS the cookie is %+v", secure)
	}
	if strings.HasPrefix(plain.Name, "__") || plain.Secure || plain.Path != "/q" {
		t.Errorf("without TLS the cookie is %+v: browsers refuse it, or send it to other applications of the host", plain)
	}
	if !letsIn(t, pages, "/q/workers", true, secure) || !letsIn(t, pages, "/q/workers", false, plain) {
		t.Error("a session does not let in")
	}
	if letsIn(t, pages, "/q/workers", true, plain) {
		t.Error("over TLS, a cookie counts that was set without")
	}
	if !letsIn(t, pages, "/q/workers", true, plain, secure) {
		t.Error("over TLS, a cookie that was set without keeps the right one from counting")
	}
}

// Of two session cookies, one may have been set by an attacker.
func TestTwoSessionCookiesAreRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, mine := q.token("mine", access.Grant{Verbs: access.Verbs()})
	_, theirs := q.token("theirs", access.Grant{Verbs: access.Verbs()})
	pages := q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}})
	first, second := cookiesOf(t, pages, "", mine, false)[0], cookiesOf(t, pages, "", theirs, false)[0]
	if letsIn(t, pages, "/workers", false, first, second) || letsIn(t, pages, "/workers", false, second, first) {
		t.Error("one of two session cookies counts")
	}
	r := httptest.NewRequestWithContext(testenv.Context(t), http.MethodGet, "/login", http.NoBody)
	r.AddCookie(first)
	r.AddCookie(second)
	newBrowser(t, pages).wants(newBrowser(t, pages).do(r), http.StatusOK, "several cookies named "+first.Name)
}

// A browser has one cookie of a name for all paths of a host.
func TestDashboardsOnOneHostHaveSeparateCookies(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, secret := q.token("nights", access.Grant{Verbs: access.Verbs()})
	names := map[string]string{}
	for _, prefix := range []string{"", "/a", "/b", "/a/b"} {
		pages := q.dashboard(dashboard.Config{Prefix: prefix, Access: &access.Authenticator{Tokens: q.tokens()}})
		name := cookiesOf(t, pages, prefix, secret, true)[0].Name
		if plain := cookiesOf(t, pages, prefix, secret, false)[0]; plain.Path != cmp.Or(prefix, "/") {
			t.Errorf("below %q, the cookie without TLS is of the path %q", prefix, plain.Path)
		}
		if other, taken := names[name]; taken {
			t.Errorf("below %q and %q the cookie is called %s", prefix, other, name)
		}
		names[name] = prefix
	}
}

// The dashboard serves its own stylesheet, script and icon to everybody, and no other file.
func TestAssetPathsReachNoOtherFile(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for _, prefix := range []string{"", "/q"} {
		pages := q.dashboard(dashboard.Config{Prefix: prefix, Access: &access.Authenticator{Tokens: q.tokens()}})
		for _, name := range []string{"style.css", "script.js", "icon.svg"} {
			if w := get(t, pages, prefix+"/assets/"+name); w.Code != http.StatusOK || w.Body.Len() == 0 {
				t.Errorf("%s: status %d", name, w.Code)
			}
		}
		for _, path := range []string{"", ".", "..", "%2e", "%2e%2e", "..%2fpages%2flogin.html", "..%2fpages/login.html", "%2e%2e/pages/login.html",
			"../pages/login.html", "..%5cpages%5clogin.html", "style.css/", "style.css/..%2f..%2fpages%2flogin.html", "%00", "/style.css", "../", "../assets", "../pages/"} {
			if w := get(t, pages, prefix+"/assets/"+path); w.Code == http.StatusOK || strings.Contains(w.Body.String(), "{{") || strings.Contains(w.Body.String(), "style.css\">style") {
				t.Errorf("/assets/%s: status %d: %.300s", path, w.Code, w.Body)
			}
		}
	}
}
