package dashboard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

const (
	sessionCookie = "events_session"
	flashCookie   = "events_said"
	// hostPrefix begins the name of a cookie that browsers accept over TLS only, and from this host alone: neither another
	// host of the domain nor a connection without TLS can set one, and so log a user in as another one.
	hostPrefix = "__Host-"
)

// cookieName is the name of a cookie of this dashboard. Dashboards below other prefixes of the host have other names.
func (d *dashboard) cookieName(r *http.Request, name string) string {
	if d.Prefix != "" {
		sum := sha256.Sum256([]byte(d.Prefix))
		name += "_" + hex.EncodeToString(sum[:4])
	}
	if overTLS(r) {
		name = hostPrefix + name
	}
	return name
}

// overTLS reports whether the browser has sent a request over TLS.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookieOf returns the value of a cookie, or "" if there is none. Of several with the name, none counts: which of them
// the dashboard has set cannot be known.
func (d *dashboard) cookieOf(r *http.Request, name string) string {
	cookies := r.CookiesNamed(d.cookieName(r, name))
	if len(cookies) != 1 {
		return ""
	}
	return cookies[0].Value
}

// setCookie sets a cookie that only the server reads, and that goes with the requests of its own pages and with links to
// them. Without TLS, other applications of the host do not get it; over TLS, browsers take hostPrefix for all paths only.
func (d *dashboard) setCookie(w http.ResponseWriter, r *http.Request, name, value string, lasts time.Duration) {
	path := "/"
	if !overTLS(r) {
		path = cmp.Or(d.Prefix, path)
	}
	http.SetCookie(w, &http.Cookie{Name: d.cookieName(r, name), Value: value, Path: path, MaxAge: int(lasts.Seconds()),
		HttpOnly: true, Secure: overTLS(r), SameSite: http.SameSiteLaxMode})
}

// removeCookie removes a cookie that came with a request.
func (d *dashboard) removeCookie(w http.ResponseWriter, r *http.Request, name string) {
	if len(r.CookiesNamed(d.cookieName(r, name))) > 0 {
		d.setCookie(w, r, name, "", -time.Second)
	}
}
