package dashboard_test

import (
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
	b.wants(b.get("/failed"), 200, `action="/failed/retry"`, `name="like" value="900060"`, `name="like" value="910000"`)
	w := b.post("/failed/retry", url.Values{"like": {"900060"}})
	at := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(at, "/operations/") {
		t.Fatalf("%d to %q: %s", w.Code, at, w.Body)
	}
	page := b.get(at)
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
	b.wants(b.get("/audit"), 200, "bulk_retry", `href="`+at+`"`)
	b.leads(b.post("/failed/retry", url.Values{"like": {"900060"}}), "/failed")
	b.wants(b.get("/failed"), 200, "no longer a failed one")
}

// What goes on is stopped.
func TestOperationCanBeStopped(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	operations, b := q.bulkOperations(everything)
	at := b.post("/failed/retry", url.Values{"like": {"900001"}}).Header().Get("Location")
	b.leads(b.post(at+"/confirm", nil), at)
	b.leads(b.post(at+"/stop", nil), at)
	rig.RunOperations(t, operations)
	b.wants(b.get(at), 200, "It is stopped", "0 of 60", "stopped")
}

// Without the verb, and on another canvas, nobody counts, confirms or stops anything; nobody else confirms a count.
func TestOperationsAreRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	operations, ada := q.bulkOperations(everything)
	at := ada.post("/failed/retry", url.Values{"like": {"900001"}}).Header().Get("Location")
	_, reader := q.bulkOperations(access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: []access.Verb{access.Read, access.Administer}})
	_, stranger := q.bulkOperations(access.Grant{Canvases: []eventqueue.CanvasID{elsewhere}, Verbs: access.Verbs()})
	for _, path := range []string{"/failed", at} {
		if page := mainPart(reader.get(path).Body.String()); strings.Contains(page, "<button") {
			t.Errorf("%s has a button: %s", path, page)
		}
	}
	reader.wants(reader.post("/failed/retry", url.Values{"like": {"900001"}}), http.StatusForbidden)
	stranger.wants(stranger.post("/failed/retry", url.Values{"like": {"900001"}}), http.StatusNotFound)
	stranger.wants(stranger.get(at), http.StatusNotFound)
	for _, action := range []string{"/confirm", "/stop"} {
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
	ada.wants(ada.post("/failed/retry", url.Values{"like": {"x"}}), http.StatusBadRequest)
	ada.wants(ada.post("/failed/retry", nil), http.StatusBadRequest)
	q.exec(`UPDATE bulk_operations SET expires_at = now()`)
	ada.leads(ada.post(at+"/confirm", nil), at)
	ada.wants(ada.get(at), 200, "The count is too old")
	without := newBrowser(t, q.dashboard(dashboard.Config{Queue: q.queue(), Identify: as(everything)}))
	without.wants(without.post("/failed/retry", url.Values{"like": {"900001"}}), http.StatusNotFound)
	if page := mainPart(without.get("/failed").Body.String()); strings.Contains(page, "<button") {
		t.Errorf("there is a button for what nobody does: %s", page)
	}
	rig.RunOperations(t, operations)
	if got := q.one(`SELECT count(*)::text FROM event_log WHERE status = 'FAILED'`); got != "60" {
		t.Errorf("%s are still failed, want 60", got)
	}
}
