package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue/operate"
)

// logged returns a dashboard for whoever may do everything, and what it logs as an error.
func (q *queue) logged() (*browser, *observer.ObservedLogs) {
	q.t.Helper()
	core, errors := observer.New(zapcore.ErrorLevel)
	operations, err := operate.NewOperations(q.store, q.queue(), nil)
	if err != nil {
		q.t.Fatal(err)
	}
	pages, err := dashboard.New(dashboard.Config{Store: q.store, Queue: q.queue(), Bulk: operations, ChangesPerSecond: 1e6, Log: zap.New(core),
		Identify: as(access.Grant{Verbs: access.Verbs()})})
	if err != nil {
		q.t.Fatal(err)
	}
	return newBrowser(q.t, pages), errors
}

// asText checks that an answer is UTF-8, and has no control characters but line ends and tabs.
func asText(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	body := w.Body.String()
	at := strings.IndexFunc(body, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' })
	if at >= 0 {
		t.Errorf("%s: the page has a control character: %.100q", what, body[max(0, at-50):])
	}
	if !utf8.ValidString(body) {
		t.Errorf("%s: the page is not UTF-8", what)
	}
}

// No page passes on to the database what that refuses: it is a mistake of who has sent it, and not of the program.
func TestPagesRefuseInvalidText(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b, errors := q.logged()
	id, canvas := q.ids[2].String(), "canvas="+seeded.Canvas.String()
	names := []string{"canvas", "module", "name", "attribute", "id", "state", "after", "before", "actor", "action", "event", "next", "other"}
	paths := []string{"/", "/live", "/handlers", "/handler", "/events", "/events/" + id, "/events/" + id + "/edit", "/failed", "/workers", "/groups", "/crons",
		"/webhooks", "/audit", "/tokens", "/operations"}
	for _, text := range []string{"%00", "a%00b", "%ff", "%c0%80", "%ed%a0%80", "%zz"} {
		for _, path := range paths {
			for _, name := range names {
				address := path + "?" + name + "=" + text
				if path == "/handler" && name != "canvas" {
					address += "&" + canvas
				}
				b.wants(b.get(address), http.StatusBadRequest, "This address cannot be read")
			}
			b.wants(b.get(path+"?"+text+"=1"), http.StatusBadRequest)
		}
		if text == "%zz" {
			continue // no request has such a path
		}
		for _, path := range []string{"/", "/events/", "/events/" + id, "/operations/", "/assets/", "/nowhere/"} {
			b.wants(b.get(path+text), http.StatusBadRequest)
		}
		b.wants(b.post("/tokens/"+text+"/revoke", nil), http.StatusBadRequest)
	}
	if errors.Len() > 0 {
		t.Errorf("%d errors are logged: %+v", errors.Len(), errors.All()[0])
	}
}

// forms are the forms of all pages, with their fields.
func formsOf(id string) map[string][]string {
	handler := []string{"canvas", "module", "name", "reason", "zone", "until", "rate", "prefix", "modifier", "of"}
	cron := []string{"canvas", "name", "schedule", "time_zone", "missed"}
	filter := []string{"canvas", "module", "name", "attribute", "state", "error", "error_group", "within", "verb", "reason"}
	group := []string{"canvas", "module", "name", "attribute", "error", "error_group", "within"}
	return map[string][]string{
		"/events/" + id + "/edit": {"version", "value", "attributes", "due", "zone"}, "/events/" + id + "/cancel": {"reason"},
		"/handler/pause": handler, "/handler/unpause": handler, "/handler/block": handler, "/handler/unblock": handler,
		"/crons/enable": cron, "/crons/disable": cron, "/crons/edit": cron, "/crons/run": {"canvas", "name", "key"}, "/tokens": {"name", "canvases", "days", "verb"},
		"/failed/retry": group, "/failed/delete": group, "/events/count": filter,
	}
}

func TestFormsRefuseInvalidText(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b, errors := q.logged()
	for path, fields := range formsOf(q.ids[2].String()) {
		for _, name := range fields {
			for _, text := range []string{"\x00", "a\x00b", "\xff", "\xed\xa0\x80"} {
				b.wants(b.post(path, url.Values{name: {text}}), http.StatusBadRequest, "This form cannot be read")
			}
		}
		b.wants(b.post(path, url.Values{"\x00": {"1"}}), http.StatusBadRequest)
	}
	if errors.Len() > 0 {
		t.Errorf("%d errors are logged: %+v", errors.Len(), errors.All()[0])
	}
}

// Control characters would reach a terminal, by a page that is saved or a proxy that logs; the fields of forms have none either.
func TestFieldsHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b, errors := q.logged()
	const hostile = "a\x1b[2J\u009b2J\x7f"
	canvas := seeded.Canvas.String()
	for _, path := range []string{"/events", "/events?state=failed", "/failed", "/audit", "/groups", "/handlers", "/handler?canvas=" + canvas, "/crons", "/webhooks", "/tokens", "/operations"} {
		for _, name := range []string{"module", "name", "attribute", "actor", "action", "id", "state", "canvas", "other"} {
			for _, text := range []string{hostile, "k=" + hostile} {
				u, err := url.Parse(path)
				if err != nil {
					t.Fatal(err)
				}
				query := u.Query()
				query.Set(name, text)
				u.RawQuery = query.Encode()
				asText(t, u.String(), b.get(u.String()))
			}
		}
	}
	for path, fields := range formsOf(q.ids[2].String()) {
		for _, name := range fields {
			form := handlerForm(seeded)
			form.Set(name, hostile)
			asText(t, path+" "+name, b.post(path, form))
		}
	}
	asText(t, "login", newBrowser(t, q.dashboard(dashboard.Config{Access: &access.Authenticator{Tokens: q.tokens()}})).post("/login", url.Values{"next": {"/" + hostile}}))
	if errors.Len() > 0 {
		t.Errorf("%d errors are logged: %+v", errors.Len(), errors.All()[0])
	}
}
