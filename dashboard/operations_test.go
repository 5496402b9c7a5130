package dashboard_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// bulkOperations returns the operations of the queue, and a browser with all rights on the seeded canvas.
func (q *queue) bulkOperations(grants ...access.Grant) (*operate.Operations, *browser) {
	q.t.Helper()
	queue := q.queue()
	operations, err := operate.NewOperations(q.store, queue, testenv.Logger(q.t))
	if err != nil {
		q.t.Fatal(err)
	}
	return operations, newBrowser(q.t, q.dashboard(dashboard.Config{Queue: queue, Bulk: operations, Identify: as(grants...)}))
}

var everything = access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: access.Verbs()}

// A group of failed events is counted, confirmed and retried, with its progress; events of the same handler with another error
// stay where they are.
func TestGroupOfFailuresCanBeRetried(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	q.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
		VALUES (910000, $1, $2, 'charge_card', '_', '{}', 'FAILED', 3, 4, 'no such customer 7', now())`, [16]byte(seeded.Canvas), seeded.Module)
	operations, b := q.bulkOperations(everything)
	page := b.get("/failed")
	b.wants(page, 200, "61 failed events", `action="/failed/retry"`, `action="/failed/delete"`, `value="no such customer #"`)
	w := b.post("/failed/retry", chargeGroup())
	at := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(at, "/operations/") {
		t.Fatalf("%d to %q: %s", w.Code, at, w.Body)
	}
	page = b.get(at)
	b.wants(page, 200, "Retry 60 events?", "charge_card", "was refused: &lt;script&gt;", at+"/confirm")
	if body := page.Body.String(); inline.MatchString(body) || strings.ContainsAny(body, "\u202e\x1b") || strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("the page has what would do harm: %s", body)
	}
	b.leads(b.post(at+"/confirm", nil), at)
	b.wants(b.get(at), 200, `http-equiv="refresh"`, "0 of 60", at+"/stop")
	rig.RunOperations(t, operations)
	page = b.get(at)
	b.wants(page, 200, "60 of 60", "done")
	if body := page.Body.String(); strings.Contains(body, `http-equiv="refresh"`) || strings.Contains(body, "<button") {
		t.Errorf("it goes on: %s", body)
	}
	b.wants(b.get("/operations"), 200, at, "60 of 60", "test:ada")
	if got := q.one(`SELECT count(*) FILTER (WHERE name = 'charge_card') || ' ' || (SELECT string_agg(id::text, '') FROM event_log) FROM events_v2`); got != "60 910000" {
		t.Errorf("in the queue, and failed: %s", got)
	}
	b.wants(b.get("/audit"), 200, "bulk retry", `href="`+at+`"`)
	if body := b.get("/failed").Body.String(); !strings.Contains(body, "1 failed event<") || strings.Contains(body, "was refused") {
		t.Errorf("what was retried is still shown: %s", body)
	}
}

// chargeGroup is the form of the group of failed events that a queue is seeded with.
func chargeGroup() url.Values {
	return url.Values{"canvas": {seeded.Canvas.String()}, "module": {seeded.Module}, "name": {"charge_card"},
		"error_group": {operate.ErrorGroup("card 7 was refused: " + hostile)}}
}

// A group of failed events is deleted, and its link shows its events and no other.
func TestGroupOfFailuresCanBeDeleted(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	q.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at) VALUES
		(910000, $1, $2, 'charge_card', '_', '{}', 'FAILED', 3, 4, 'column 7', now()), (910001, $1, $2, 'charge_card', '_', '{}', 'FAILED', 3, 4, 'column bad', now())`, [16]byte(seeded.Canvas), seeded.Module)
	operations, b := q.bulkOperations(everything)
	group := chargeGroup()
	group.Set("error_group", "column #")
	link := url.Values{"state": {"failed"}}
	for field := range group {
		link.Set(field, group.Get(field))
	}
	link.Del("verb")
	events := b.get("/events?" + link.Encode())
	b.wants(events, 200, "/events/910000", "Delete all", "Retry all")
	if strings.Contains(events.Body.String(), "910001") {
		t.Errorf("the group has another event: %s", events.Body)
	}
	page := b.get("/failed")
	b.wants(page, 200, "62 failed events")
	if body := html.UnescapeString(page.Body.String()); !strings.Contains(body, `href="/events?`+link.Encode()+`"`) {
		t.Errorf("no link leads to the group: %s", body)
	}
	b.wants(b.get("/failed?error=bad&within=1"), 200, "1 failed event<", "column bad")
	at := b.post("/failed/delete", group).Header().Get("Location")
	b.wants(b.get(at), 200, "Delete 1 event?", "column #", `href="/failed?canvas=`)
	b.leads(b.post(at+"/confirm", nil), at)
	rig.RunOperations(t, operations)
	if got := q.one(`SELECT count(*) || ' ' || max(id) FROM event_log`); got != "61 910001" {
		t.Errorf("in the history: %s", got)
	}
}

// What goes on is stopped.
func TestOperationCanBeStopped(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	operations, b := q.bulkOperations(everything)
	at := b.post("/failed/retry", chargeGroup()).Header().Get("Location")
	b.leads(b.post(at+"/confirm", nil), at)
	b.leads(b.post(at+"/stop", nil), at)
	rig.RunOperations(t, operations)
	b.wants(b.get(at), 200, "It is stopped", "0 of 60", "stopped", at+"/resume")
	b.leads(b.post(at+"/resume", nil), at)
	b.wants(b.get(at), 200, `http-equiv="refresh"`, "0 of 60", at+"/stop")
}

// Without the verb, and on another canvas, nobody counts, confirms or stops anything; nobody else confirms a count.
func TestOperationsAreRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	operations, ada := q.bulkOperations(everything)
	at := ada.post("/failed/retry", chargeGroup()).Header().Get("Location")
	_, reader := q.bulkOperations(access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: []access.Verb{access.Read, access.Administer}})
	_, stranger := q.bulkOperations(access.Grant{Canvases: []eventqueue.CanvasID{elsewhere}, Verbs: access.Verbs()})
	for _, path := range []string{"/failed", at} {
		if page := mainPart(reader.get(path).Body.String()); strings.Contains(page, `method="post"`) {
			t.Errorf("%s has a button: %s", path, page)
		}
	}
	reader.wants(reader.post("/failed/retry", chargeGroup()), http.StatusForbidden)
	stranger.wants(stranger.post("/failed/retry", chargeGroup()), http.StatusForbidden)
	stranger.wants(stranger.get(at), http.StatusNotFound)
	for _, action := range []string{"/confirm", "/stop", "/resume"} {
		reader.wants(reader.post(at+action, nil), http.StatusForbidden)
		stranger.wants(stranger.post(at+action, nil), http.StatusNotFound)
		ada.wants(ada.post("/operations/0197a3c1-8a52-4bd0-9a5e-2f1c4a9d7e10"+action, nil), http.StatusNotFound)
		ada.wants(ada.post("/operations/x"+action, nil), http.StatusNotFound)
	}
	eve := newBrowser(t, q.dashboard(dashboard.Config{Queue: q.queue(), Bulk: operations, Identify: func(*http.Request) (access.Identity, error) {
		return access.Identity{Name: "test:eve", Grants: []access.Grant{everything}}, nil
	}}))
	eve.leads(eve.post(at+"/confirm", nil), at)
	eve.wants(eve.get(at), 200, "Only who has counted")
	ada.wants(ada.post("/failed/retry", url.Values{"canvas": {seeded.Canvas.String()}, "module": {"M"}, "name": {"n"}}), http.StatusBadRequest)
	ada.wants(ada.post("/failed/retry", nil), http.StatusBadRequest)
	q.exec(`UPDATE bulk_operations SET expires_at = now()`)
	ada.leads(ada.post(at+"/confirm", nil), at)
	ada.wants(ada.get(at), 200, "The count is too old")
	without := newBrowser(t, q.dashboard(dashboard.Config{Queue: q.queue(), Identify: as(everything)}))
	without.wants(without.post("/failed/retry", chargeGroup()), http.StatusNotFound)
	if page := mainPart(without.get("/failed").Body.String()); strings.Contains(page, `method="post"`) {
		t.Errorf("there is a button for what nobody does: %s", page)
	}
	rig.RunOperations(t, operations)
	if got := q.one(`SELECT count(*)::text FROM event_log WHERE status = 'FAILED'`); got != "60" {
		t.Errorf("%s are still failed, want 60", got)
	}
}
