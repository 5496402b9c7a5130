package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/test/testenv"
)

// steering returns a dashboard that changes the queue, for ada with verbs on the seeded canvas.
func (q *queue) steering(verbs ...access.Verb) *browser {
	q.t.Helper()
	return newBrowser(q.t, q.dashboard(dashboard.Config{Queue: q.queue(),
		Identify: as(access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: verbs})}))
}

func (q *queue) queue() *eventqueue.Queue {
	q.t.Helper()
	queue, err := eventqueue.New(q.store, memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{Logger: testenv.Logger(q.t)})
	if err != nil {
		q.t.Fatal(err)
	}
	return queue
}

// one returns the only value of a query, as a text.
func (q *queue) one(sql string, args ...any) (text string) {
	q.t.Helper()
	if err := q.store.Pool().QueryRow(testenv.Context(q.t), sql, args...).Scan(&text); err != nil {
		q.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// audited counts the rows that a dashboard has written for ada.
func (q *queue) audited(action string) string {
	q.t.Helper()
	return q.one(`SELECT count(*)::text FROM audit_log WHERE ($1 = '' OR action = $1) AND via = 'dashboard'
		AND ($1 = '' OR actor = 'test:ada' AND source = '192.0.2.1')`, action)
}

// changes are forms that change an event, with fields.
var changes = map[string]url.Values{
	"run": nil, "cancel": {"reason": {"no longer"}}, "delete": nil, "retry": nil, "edit": {"value": {`{"cents":1}`}, "attributes": {"{}"}},
}

// An event is edited, run now, cancelled, retried and deleted by forms; each is in the audit log.
func TestEventCanBeChangedFromItsPage(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := q.steering(access.Verbs()...)
	id := q.ids[2]
	at := "/events/" + id.String()
	state := func(want string) {
		t.Helper()
		b.wants(b.get(at), 200, want)
	}
	b.wants(b.get(at), 200, at+"/run", at+"/edit", at+"/cancel", at+"/delete", `data-copy`)
	b.leads(b.post(at+"/edit", url.Values{"value": {"{\r\n  \"customer\": \"Ada\",\r\n  \"cents\": 12345678901234567890\r\n}"}, "attributes": {`{"by": "hand"}`}, "due": {"2027-01-31T18:30"}, "zone": {"Europe/Berlin"}}), at)
	state("It was changed.")
	if w := b.get(at); strings.Contains(w.Body.String(), "It was changed.") {
		t.Error("what was said is said again")
	}
	if got := q.one(`SELECT value || attributes::text || (delay_until AT TIME ZONE 'UTC') FROM events_v2 WHERE id = $1`, id); got != `{"customer":"Ada","cents":12345678901234567890}{"by": "hand"}2027-01-31 17:30:00` {
		t.Errorf("the event is %s", got)
	}
	b.leads(b.post(at+"/run", nil), at)
	state("It is due now")
	b.leads(b.post(at+"/cancel", url.Values{"reason": {"no longer " + script}}), at)
	state("It was cancelled")
	state("by test:ada, before any worker had claimed it: no longer &lt;script&gt;")
	b.leads(b.post(at+"/cancel", nil), at)
	state("was cancelled: a retry moves it back into the queue")
	b.leads(b.post(at+"/edit", url.Values{"value": {`"again"`}, "attributes": {"{}"}}), at)
	state("It is back in the queue")
	if got := q.one(`SELECT value || coalesce(attributes::text, '-') FROM events_v2 WHERE id = $1`, id); got != `"again"-` {
		t.Errorf("the event is %s", got)
	}
	b.leads(b.post(at+"/cancel", nil), at)
	b.leads(b.post(at+"/retry", nil), at)
	state("It is back in the queue")
	b.leads(b.post(at+"/retry", nil), at)
	state("already back in the queue")
	b.leads(b.post(at+"/cancel", nil), at)
	b.leads(b.post(at+"/delete", nil), "/events?state=cancelled")
	b.wants(b.get("/events"), 200, "Event "+id.String()+" was deleted.")
	b.wants(b.post(at+"/delete", nil), http.StatusNotFound)
	for action, want := range map[string]string{"edit": "1", "run": "1", "cancel": "3", "retry": "2", "delete": "1"} {
		if n := q.audited(action); n != want {
			t.Errorf("%s rows of %s, want %s", n, action, want)
		}
	}
}

// Without the verb, on another canvas and in a dashboard that only shows, there is no button, and the form is refused.
func TestChangesOfAnEventAreRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	strange := q.insertElsewhere()
	before := q.one(`SELECT string_agg(e::text, '' ORDER BY id) FROM events_v2 AS e`)
	everything := as(access.Grant{Verbs: access.Verbs()})
	for name, test := range map[string]struct {
		b      *browser
		id     eventqueue.EventID
		status int
	}{
		"without the verb":  {q.steering(access.Read, access.ReadValues, access.Emit, access.Administer), q.ids[0], http.StatusForbidden},
		"on another canvas": {q.steering(access.Verbs()...), strange, http.StatusNotFound},
		"of no event":       {q.steering(access.Verbs()...), 987654, http.StatusNotFound},
		"only shown":        {newBrowser(t, q.dashboard(dashboard.Config{Identify: everything})), q.ids[0], http.StatusForbidden},
	} {
		at := "/events/" + test.id.String()
		if page := mainPart(test.b.get(at).Body.String()); strings.Contains(page, "<button") || strings.Contains(page, at+"/edit") {
			t.Errorf("%s: there is a button: %s", name, page)
		}
		for change, fields := range changes {
			if w := test.b.post(at+"/"+change, fields); w.Code != test.status {
				t.Errorf("%s: %s is answered with %d, want %d: %.1000s", name, change, w.Code, test.status, w.Body)
			}
			if w := test.b.get(at + "/" + change); w.Code != http.StatusMethodNotAllowed && change != "edit" {
				t.Errorf("GET %s: %d", change, w.Code)
			}
		}
		if w := test.b.get(at + "/edit"); w.Code != test.status {
			t.Errorf("%s: the form for an edit is answered with %d, want %d", name, w.Code, test.status)
		}
	}
	full := q.steering(access.Verbs()...)
	for change, fields := range changes {
		r := formRequest(testenv.Context(t), "/events/"+q.ids[0].String()+"/"+change, fields)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		full.wants(full.do(r), http.StatusForbidden)
		full.wants(full.post("/events/x/"+change, fields), http.StatusBadRequest)
	}
	if after := q.one(`SELECT string_agg(e::text, '' ORDER BY id) FROM events_v2 AS e`); after != before || q.audited("") != "0" {
		t.Errorf("the events were\n%s\nand are\n%s\nwith %s rows in the audit log", before, after, q.audited(""))
	}
}

// mainPart is the main part of a page, without what every page has.
func mainPart(page string) string {
	_, main, _ := strings.Cut(page, "<main")
	main, _, _ = strings.Cut(main, "</main>")
	return main
}

func (q *queue) insertElsewhere() eventqueue.EventID {
	q.t.Helper()
	q.insert(eventqueue.NewEvent{Canvas: elsewhere, Module: "WORKER", Name: "send_invoice", Modifier: "_", Value: []byte(`{}`)})
	return q.ids[len(q.ids)-1]
}

var textarea = regexp.MustCompile(`(?s)<textarea name="(\w+)"[^>]*>\n(.*?)</textarea>`)

// A form that is sent as it was opened changes nothing, whatever the event has; a mistake is shown in the form that
// has it, and changes nothing either.
func TestUnchangedFormChangesNothing(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := q.steering(access.Verbs()...)
	q.exec(`UPDATE events_v2 SET attributes = $2 WHERE id = $1`, q.ids[0], `{"a": "two\nlines `+"\u202e"+`", "b": "<textarea>"}`)
	before := q.one(`SELECT string_agg(e::text, '' ORDER BY id) FROM events_v2 AS e`)
	for _, id := range q.ids {
		at := "/events/" + id.String()
		w := b.get(at + "/edit")
		b.wants(w, 200)
		if page := w.Body.String(); len(page) > 200<<10 || strings.ContainsAny(page, "\u202e\x1b") || inline.MatchString(page) {
			t.Errorf("the form has %d bytes, or what would do harm", len(page))
		}
		fields := url.Values{}
		for _, found := range textarea.FindAllStringSubmatch(w.Body.String(), -1) {
			fields.Set(found[1], strings.ReplaceAll(html.UnescapeString(found[2]), "\n", "\r\n"))
		}
		if len(fields) != 2 {
			t.Fatalf("the form has %v", fields)
		}
		b.leads(b.post(at+"/edit", fields), at)
		b.wants(b.get(at), 200, "was not changed: the form was left as it was")
	}
	at := "/events/" + q.ids[2].String()
	for want, wrong := range map[string]url.Values{
		"The value is no JSON":          {"value": {"{x " + script}, "attributes": {"{}"}},
		"The attributes are no JSON":    {"value": {"1"}, "attributes": {"x=1"}},
		"The attributes are no object":  {"value": {"1"}, "attributes": {`{"a": 1}`}},
		"of texts":                      {"value": {"1"}, "attributes": {"null"}},
		"neither a time nor":            {"value": {"1"}, "attributes": {"{}"}, "due": {"tomorrow"}},
		"a duration must be positive":   {"value": {"1"}, "attributes": {"{}"}, "due": {"-1h"}},
		"delay_until":                   {"value": {"1"}, "attributes": {"{}"}, "due": {"9999-01-01 00:00"}},
		"value: ":                       {"value": {`"` + strings.Repeat("x", 300<<10) + `"`}, "attributes": {"{}"}},
		`{x &lt;script&gt;`:             {"value": {"{x " + script}, "attributes": {"{}"}},
		html.EscapeString(`{"a": "b"}`): {"value": {"{"}, "attributes": {`{"a": "b"}`}},
	} {
		b.wants(b.post(at+"/edit", wrong), http.StatusUnprocessableEntity, want, `role="alert"`)
	}
	b.wants(b.post(at+"/edit", url.Values{"value": {strings.Repeat("x", 5<<20)}}), http.StatusRequestEntityTooLarge)
	b.wants(b.post(at+"/cancel", url.Values{"reason": {strings.Repeat("x", 2000)}}), http.StatusBadRequest)
	b.wants(b.post(at+"/cancel", url.Values{"reason": {"\x00"}}), http.StatusBadRequest)
	if after := q.one(`SELECT string_agg(e::text, '' ORDER BY id) FROM events_v2 AS e`); after != before || q.audited("") != "0" {
		t.Errorf("the events were\n%s\nand are\n%s", before, after)
	}
}

// Of two who have the form of an event open at once, the second is told that it has changed, and changes nothing.
func TestStaleEditIsRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := q.steering(access.Verbs()...)
	at := "/events/" + q.ids[2].String()
	version := regexp.MustCompile(`name="version" value="([0-9a-f]+)"`).FindStringSubmatch(b.get(at + "/edit").Body.String())
	if version == nil {
		t.Fatal("the form has no version")
	}
	form := func(value string) url.Values {
		return url.Values{"value": {value}, "attributes": {`{}`}, "version": {version[1]}}
	}
	b.leads(b.post(at+"/edit", form(`"of the first"`)), at)
	b.wants(b.post(at+"/edit", form(`"of the second"`)), http.StatusConflict, "has changed since you opened the form", "Nothing was saved")
	if got := q.one(`SELECT value FROM events_v2 WHERE id = $1`, q.ids[2]); got != `"of the first"` || q.audited("edit") != "1" {
		t.Errorf("the value is %s", got)
	}
}

// The same holds for the form of an event that has ended, also if it changes between the check and the write.
func TestStaleRetryIsRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := q.steering(access.Verbs()...)
	const at = "/events/900001"
	version := regexp.MustCompile(`name="version" value="([0-9a-f]+)"`).FindStringSubmatch(b.get(at + "/edit").Body.String())
	if version == nil {
		t.Fatal("the form has no version")
	}
	form := url.Values{"value": {`"mine"`}, "attributes": {`{}`}, "version": {version[1]}}
	// A second dashboard holds the row, changes it, and lets go while the first one waits for it.
	ctx := testenv.Context(t)
	tx, err := q.store.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `UPDATE event_log SET value = '"theirs"' WHERE id = 900001`); err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	go func() {
		b.post(at+"/edit", form)
		answer <- b.get(at).Body.String()
	}()
	for waits := "f"; waits == "f"; {
		waits = q.one(`SELECT left(exists(SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')::text, 1)`)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if page := <-answer; !strings.Contains(page, "has been changed since it was read") {
		t.Errorf("the page is %s", page)
	}
	b.wants(b.post(at+"/edit", form), http.StatusConflict, "has changed since you opened the form")
	if got := q.one(`SELECT value FROM event_log WHERE id = 900001`); got != `"theirs"` || q.audited("retry") != "0" {
		t.Errorf("the value is %s", got)
	}
}

// Who may not read values can replace one, and does not see it.
func TestEditWithoutReadingValues(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := q.steering(access.Read, access.Operate)
	at := "/events/" + q.ids[2].String()
	form := b.get(at + "/edit")
	b.wants(form, 200, "You may not read the value")
	if strings.Contains(form.Body.String(), "4200") || strings.Contains(b.get(at).Body.String(), "4200") {
		t.Error("the value is shown")
	}
	b.leads(b.post(at+"/edit", url.Values{"attributes": {`{"a":"b"}`}, "value": {" "}}), at)
	if got := q.one(`SELECT value || attributes::text FROM events_v2 WHERE id = $1`, q.ids[2]); got != `{"customer":"Ada","cents":4200}{"a": "b"}` {
		t.Errorf("the event is %s", got)
	}
	b.leads(b.post(at+"/edit", url.Values{"attributes": {`{"a":"b"}`}, "value": {"2"}}), at)
	if got := q.one(`SELECT value FROM events_v2 WHERE id = $1`, q.ids[2]); got != "2" {
		t.Errorf("the value is %s", got)
	}
}

// An event that a worker runs is left alone, unless it is cancelled.
func TestRunningEventCannotBeChanged(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := q.steering(access.Verbs()...)
	id := q.ids[0]
	q.exec(`UPDATE events_v2 SET locked_at = now() WHERE id = $1`, id)
	at := "/events/" + id.String()
	for _, change := range []string{"run", "delete", "edit"} {
		b.leads(b.post(at+"/"+change, changes[change]), at)
		b.wants(b.get(at), 200, "is running: a worker holds its lock")
	}
	if n := q.audited(""); n != "0" {
		t.Errorf("%s rows", n)
	}
	b.leads(b.post(at+"/cancel", changes["cancel"]), at)
	b.wants(b.get(at), 200, "was asked to end the run", "while it ran, and is not run again")
	if n := q.audited("cancel_run"); n != "1" {
		t.Errorf("%s rows of the cancel", n)
	}
	b.wants(b.post(fmt.Sprintf("%s/%s", at, "nothing"), nil), http.StatusNotFound)
}
