package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
)

// The audit page has who changed what, and how it was before and is now; values only for those who may read them, and
// nothing of another canvas.
func TestAuditPageShowsActorAndBothStates(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := q.steering(access.Verbs()...)
	id := q.ids[2].String()
	b.leads(b.post("/events/"+id+"/edit", url.Values{"value": {`{"cents":9900,"text":"<script>alert(1)</script>"}`}, "attributes": {"{}"}}), "/events/"+id)
	b.leads(b.post("/handler/pause", handlerForm(seeded, "reason", "the bank "+hostile)), "/handler?"+handlerForm(seeded).Encode())
	page := b.get("/audit")
	b.wants(page, 200, "test:ada", "dashboard</bdi> from <bdi>192.0.2.1</bdi>", "edit", `/events/`+id, "4200", "9900", "pause", "the bank &lt;script&gt;")
	if body := page.Body.String(); inline.MatchString(body) || strings.ContainsAny(body, "\u202e\x1b") || len(body) > 200<<10 {
		t.Errorf("the page has what would do harm, or is too long: %s", body)
	}
	b.wants(b.get("/audit?event="+id), 200, "9900")
	if strings.Contains(b.get("/audit?event="+id).Body.String(), "the bank") {
		t.Error("the filter by event does not filter")
	}
	b.wants(b.get("/audit?action=pause&actor=test:ada"), 200, "the bank")
	b.wants(b.get("/audit?actor=nobody"), 200, "No such changes")
	b.wants(b.get("/audit?event=3000000000"), 200, "No such changes")
	for _, wrong := range []string{"?event=x", "?before=-1", "?canvas=x", "?actor=%00", "?action=%ff"} {
		b.wants(b.get("/audit"+wrong), 400)
	}
	blind := q.steering(access.Read).get("/audit").Body.String()
	if strings.Contains(blind, "9900") || strings.Contains(blind, "4200") || !strings.Contains(blind, "edit") {
		t.Errorf("who may not read values sees %s", blind)
	}
	theirs := newBrowser(t, q.dashboard(dashboard.Config{Identify: as(access.Grant{Canvases: []eventqueue.CanvasID{elsewhere}, Verbs: access.Verbs()})}))
	theirs.wants(theirs.get("/audit"), 200, "No such changes")
	theirs.wants(theirs.get("/audit?canvas="+seeded.Canvas.String()), 403)
}

// What was changed is said in words, and a handler that is none has no page.
func TestAuditPageNamesWhatWasChanged(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for target, change := range map[string][2]string{
		`{"handler": {"module": "WORKER", "name": "mail_", "prefix": true}}`:  {},
		`{"handler": {"module": "WORKER", "name": "pay", "modifier": "eur"}}`: {},
		`{"rate_limit": {"module": "", "name": ""}}`:                          {},
		`{"rate_limit": {"module": "WORKER", "name": "pay"}}`:                 {},
		`{"concurrency_limit": "handler WORKER\u001fpay"}`:                    {},
		`{"concurrency_limit": "keys"}`:                                       {},
		`{"cron": "nightly"}`:                                                 {`{"name": "nightly", "enabled": true}`, `{"name": "nightly", "enabled": false}`},
		`{"token": "7a5f22b8-df5d-4e68-934e-2782cb9269d6", "name": "ada"}`:    {},
		`{"setting": "lock_timeout"}`:                                         {},
		`{"something": "of a later version"}`:                                 {},
	} {
		q.exec(`INSERT INTO audit_log (actor, source, via, action, canvas_id, target, before, after)
			VALUES ('os:ada', 'here', 'eventctl', 'create_token', $1, $2, nullif($3, '')::jsonb, nullif($4, '')::jsonb)`, [16]byte(seeded.Canvas), target, change[0], change[1])
	}
	b := q.steering(access.Verbs()...)
	page := b.get("/audit?action=create+token")
	b.wants(page, 200, "create token", "all of WORKER whose names begin with mail_", "WORKER / pay, modifier eur", "rate limit of the whole canvas", "rate limit of WORKER / pay",
		"concurrency limit of WORKER / pay", "concurrency limit of each ordering key", "cron nightly", "token ada", "setting lock_timeout", "something of a later version",
		"enabled</bdi>: <del><bdi>true</bdi></del> → <ins><bdi>false</bdi></ins>")
	if n := strings.Count(page.Body.String(), `href="/handler?`); n != 2 { // of the modifier, and of the handler's rate limit
		t.Errorf("%d targets lead to the page of a handler, want 2", n)
	}
}

// A long log is listed in pages that leave nothing out.
func TestAuditPagesLeaveNothingOut(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.exec(`INSERT INTO audit_log (actor, source, via, action, canvas_id, target, before, after)
		SELECT 'os:' || i, 'here', 'eventctl', 'edit', $1, jsonb_build_object('events', jsonb_build_array(i)),
		    jsonb_build_object(i, jsonb_build_object('value', repeat('"', 8000), 'name', repeat($2, 500))), jsonb_build_object(i, jsonb_build_object('value', repeat('&', 8000)))
		FROM generate_series(1, 120) AS i`, [16]byte(seeded.Canvas), hostile)
	b := q.steering(access.Verbs()...)
	seen := 0
	for path := "/audit"; path != ""; {
		body := b.get(path).Body.String()
		if len(body) > 200<<10 {
			t.Errorf("%s has %d bytes", path, len(body))
		}
		seen += strings.Count(body, "<bdi>os:")
		path = nextPage(body)
	}
	if seen != 120 {
		t.Errorf("the pages have %d changes, want 120", seen)
	}
}
