package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/test/rig"
)

// What the filter of the page Events selects is counted, confirmed and changed, and nothing else is.
func TestChangeAllThatIsFiltered(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	other := eventqueue.NewEvent{Canvas: seeded.Canvas, Module: seeded.Module, Name: "other", Modifier: "_", Value: []byte("1")}
	q.insert(other)
	operations, b := q.bulkOperations(everything)
	canvas := seeded.Canvas.String()
	filter := "?canvas=" + canvas + "&module=" + seeded.Module + "&name=" + seeded.Name
	page := b.get("/events" + filter)
	b.wants(page, 200, `action="/events/count"`, `name="verb" value="run"`, `name="verb" value="cancel"`, `name="verb" value="delete"`, `name="canvas" value="`+canvas+`"`)
	if strings.Contains(page.Body.String(), `value="retry"`) {
		t.Error("what waits can be retried")
	}
	form := func(verb string, more ...string) url.Values {
		v := url.Values{"canvas": {canvas}, "module": {seeded.Module}, "name": {seeded.Name}, "verb": {verb}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	change := func(form url.Values, asks string) string {
		t.Helper()
		w := b.post("/events/count", form)
		at := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(at, "/operations/") {
			t.Fatalf("%d to %q: %s", w.Code, at, w.Body)
		}
		page := b.get(at)
		b.wants(page, 200, asks, at+"/confirm", `href="/events?`)
		if body := page.Body.String(); inline.MatchString(body) || strings.ContainsAny(body, "\u202e\x1b") {
			t.Errorf("the page has what would do harm: %s", body)
		}
		b.leads(b.post(at+"/confirm", nil), at)
		rig.RunOperations(t, operations)
		b.wants(b.get(at), 200, "done")
		return at
	}
	at := change(form("cancel", "reason", "no longer "+script), "Cancel 3 events?")
	b.wants(b.get("/operations"), 200, at, "3 of 3", "test:ada")
	if got := q.one(`SELECT string_agg(name, ' ') || ' ' || (SELECT count(*) FROM event_log WHERE status = 'CANCELLED') FROM events_v2`); got != "other 3" {
		t.Errorf("in the queue, and cancelled: %s", got)
	}
	b.wants(b.get("/events"+filter+"&state=cancelled"), 200, `name="verb" value="retry"`)
	change(form("retry", "state", "cancelled"), "Retry 3 events?")
	change(form("run", "state", "waiting"), "Run 3 events?")
	change(form("delete"), "Delete 3 events?")
	if got := q.one(`SELECT string_agg(name, ' ') FROM events_v2`); got != "other" {
		t.Errorf("in the queue: %s", got)
	}
}

// Events that have completed are replayed, and the page of one that was leads to what it repeats.
func TestReplayAllThatIsFiltered(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	operations, b := q.bulkOperations(access.Grant{Verbs: access.Verbs()})
	q.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		VALUES (70001, $1, 'WORKER', 'ship', '_', '1', 'COMPLETED', 0, 1, now())`, [16]byte(seeded.Canvas))
	canvas := seeded.Canvas.String()
	b.wants(b.get("/events?state=COMPLETED&canvas="+canvas), 200, `name="verb" value="replay"`, "Replay all …")
	at := b.post("/events/count", url.Values{"canvas": {canvas}, "state": {"COMPLETED"}, "verb": {"replay"}}).Header().Get("Location")
	b.wants(b.get(at), 200, "Replay 1 event?", "at most 100 become due in a second", "Completed events")
	b.leads(b.post(at+"/confirm", nil), at)
	rig.RunOperations(t, operations)
	b.wants(b.get(at), 200, "done")
	b.wants(b.get("/events/"+q.one(`SELECT id::text FROM events_v2`)), 200, "Replayed from</dt>\n<dd><a href=\"/events/70001\">")
}

// Without a filter, without the verb, on another canvas, and for states that allow nothing, nothing is offered or counted.
func TestChangesOfManyAreRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	_, all := q.bulkOperations(access.Grant{Verbs: access.Verbs()})
	_, ada := q.bulkOperations(everything)
	_, reader := q.bulkOperations(access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: []access.Verb{access.Read}})
	_, operator := q.bulkOperations(access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: []access.Verb{access.Read, access.Operate}})
	_, blind := q.bulkOperations(access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: []access.Verb{access.Operate}},
		access.Grant{Canvases: []eventqueue.CanvasID{elsewhere}, Verbs: []access.Verb{access.Read}})
	canvas := seeded.Canvas.String()
	for _, c := range []struct {
		who  *browser
		path string
	}{
		{all, "/events"}, {all, "/events?state=failed"}, {operator, "/events?state=completed&canvas=" + canvas}, {all, "/events?state=running&canvas=" + canvas},
		{all, "/events?canvas=" + canvas + "&id=" + q.ids[0].String()}, {reader, "/events?canvas=" + canvas},
	} {
		if page := c.who.get(c.path).Body.String(); strings.Contains(page, "/events/count") {
			t.Errorf("%s offers a change of all: %s", c.path, page)
		}
	}
	all.wants(all.get("/events?state=waiting"), 200, "/events/count")
	ada.wants(ada.get("/events"), 200, "/events/count", `name="canvas" value="`+canvas+`"`) // it is of the canvas
	form := func(more ...string) url.Values {
		v := url.Values{"verb": {"delete"}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	for _, c := range []struct {
		who  *browser
		form url.Values
		want int
	}{
		{all, form(), http.StatusUnprocessableEntity},
		{all, form("verb", "retry", "state", "failed"), http.StatusUnprocessableEntity},
		{all, form("verb", "retry", "canvas", canvas), http.StatusUnprocessableEntity},
		{all, form("verb", "cancel", "canvas", canvas, "state", "running"), http.StatusUnprocessableEntity},
		{all, form("verb", "edit", "canvas", canvas), http.StatusUnprocessableEntity},
		{all, form("verb", "delete", "canvas", canvas, "state", "completed"), http.StatusUnprocessableEntity},
		{operator, form("verb", "replay", "canvas", canvas, "state", "COMPLETED"), http.StatusUnprocessableEntity},
		{all, form("verb", "replay", "canvas", canvas, "state", "waiting"), http.StatusUnprocessableEntity},
		{all, form("canvas", "x"), http.StatusBadRequest},
		{all, form("canvas", canvas, "state", "odd"), http.StatusBadRequest},
		{all, form("canvas", canvas, "attribute", "odd"), http.StatusBadRequest},
		{ada, form("module", seeded.Module), http.StatusForbidden},
		{ada, form("canvas", elsewhere.String()), http.StatusForbidden},
		{reader, form("canvas", canvas), http.StatusForbidden},
		{blind, form("canvas", canvas), http.StatusForbidden},
	} {
		c.who.wants(c.who.post("/events/count", c.form), c.want)
	}
	if n := q.one(`SELECT count(*)::text FROM bulk_operations`); n != "0" {
		t.Errorf("%s operations were counted", n)
	}
}

// Who makes too many changes at once is put off, and others are not.
func TestChangesAreLimitedByIdentity(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	name := "ada"
	b := newBrowser(t, q.dashboard(dashboard.Config{Queue: q.queue(), ChangesPerSecond: 1e-6, Identify: func(*http.Request) (access.Identity, error) {
		return access.Identity{Name: "staff:" + name, Grants: []access.Grant{everything}}, nil
	}}))
	at := "/events/" + q.ids[0].String()
	b.leads(b.post(at+"/run", nil), at)
	refused := b.post(at+"/cancel", nil)
	b.wants(refused, http.StatusTooManyRequests, "Too many changes", "Nothing was changed")
	if refused.Header().Get("Retry-After") == "" {
		t.Error("it is not said when to try again")
	}
	b.wants(b.get(at), 200)
	name = "grace"
	b.leads(b.post(at+"/cancel", nil), at)
	if got := q.one(`SELECT string_agg(actor || ' ' || action, ', ' ORDER BY id) FROM audit_log`); got != "staff:ada run, staff:grace cancel" {
		t.Errorf("the audit log has: %s", got)
	}
}
