package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
)

// named gives the canvas of the events a name, beside others.
func (q *queue) named(name string) *queue {
	q.t.Helper()
	q.exec(`INSERT INTO canvas_names (canvas_id, name) VALUES ($1, $2), ($3, 'Elsewhere')`, [16]byte(seeded.Canvas), name, [16]byte(elsewhere))
	return q
}

// Pages show the name of a canvas, with its uuid, and of one without a name the beginning of the uuid. A name that would do harm is text.
func TestPagesNameCanvases(t *testing.T) {
	t.Parallel()
	const name = `Ä & <b onclick="x()">`
	q := newQueue(t).seed().named(name + "\u202e")
	const other = "08000000-0000-4000-8000-000000000003"
	q.exec(`INSERT INTO rate_limits (canvas_id, module, name, per_minute) VALUES ($1, '', '', 5), ($2, 'WORKER', 'send_invoice', 5)`, other, [16]byte(seeded.Canvas))
	q.exec(`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, 'canvas', 3)`, [16]byte(seeded.Canvas))
	q.exec(`INSERT INTO cron_definitions (canvas_id, name, schedule) VALUES ($1, 'nightly', '0 3 * * *')`, [16]byte(seeded.Canvas))
	q.exec(`INSERT INTO webhook_sources (source, canvas_id, scheme, served_at, refusals) VALUES ('github', $1, 'github', now(), '[]')`, [16]byte(seeded.Canvas))
	q.exec(`INSERT INTO access_tokens (id, name, hash, verbs, canvases, created_by) VALUES (gen_random_uuid(), 'mine', '\x01', '{read}', ARRAY[$1::uuid], 'me')`, [16]byte(seeded.Canvas))
	q.exec(`INSERT INTO audit_log (actor, source, via, action, canvas_id, target) VALUES ('me', 'here', 'api', 'limit', $1, '{}')`, [16]byte(seeded.Canvas))
	b := newBrowser(t, q.dashboard(dashboard.Config{}))
	const shown = `<bdi>Ä &amp; &lt;b onclick=&#34;x()&#34;&gt;\u202e</bdi>`
	for _, path := range []string{"/events", "/events/" + q.ids[0].String(), "/failed", "/handlers", "/groups", "/crons", "/webhooks", "/audit", "/tokens", handlerURL(seeded)} {
		b.wants(b.get(path), 200, shown, seeded.Canvas.String())
	}
	b.wants(b.get("/groups"), 200, `title="`+other+`">canvas 08000000<`)
	for _, path := range []string{"/", "/workers"} {
		if page := b.get(path).Body.String(); strings.Contains(page, "Ä") {
			t.Errorf("%s names a canvas that it does not show", path)
		}
	}
	q.exec(`ALTER TABLE canvas_names RENAME TO canvas_names_before`)
	b.wants(b.get("/events"), 200, "canvas 06000000<") // as with a role that may not read them
}

// handlerURL is the address of the page of a handler.
func handlerURL(of eventqueue.Scope) string {
	return "/handler?" + url.Values{"canvas": {of.Canvas.String()}, "module": {of.Module}, "name": {of.Name}}.Encode()
}

// Filters and forms take the name of a canvas in place of its uuid, and say of a name that no canvas has.
func TestCanvasIsSelectedByItsName(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed().named("Acme Ltd")
	q.exec(`INSERT INTO cron_definitions (canvas_id, name, schedule) VALUES ($1, 'nightly', '0 3 * * *')`, [16]byte(elsewhere))
	b := q.steering(access.Verbs()...)
	for _, path := range []string{"/events", "/failed", "/handlers", "/groups", "/crons", "/audit", "/"} {
		b.wants(b.get(path+"?canvas=acme+ltd"), 400, "no canvas that you may read has this name")
		b.wants(b.get(path+"?canvas=+Acme+Ltd"), 200)
	}
	b.wants(b.get("/events?canvas=Acme+Ltd"), 200, "/events/"+q.ids[0].String(), `name="canvas" value="Acme Ltd"`)
	b.wants(b.get("/events?canvas=Acme+Ltd&state=failed"), 200, `canvas=Acme&#43;Ltd`, "charge_card")
	all := newBrowser(t, q.dashboard(dashboard.Config{}))
	all.wants(all.get("/events?canvas=Elsewhere"), 200, "No such events")
	all.wants(all.get("/crons?canvas=Elsewhere"), 200, "nightly", "<bdi>Elsewhere</bdi>")
	here := "/groups?canvas=" + seeded.Canvas.String()
	b.leads(b.post("/limits/rate/set", url.Values{"canvas": {"Acme Ltd"}, "per_day": {"5000"}}), here)
	b.leads(b.post("/limits/rate/set", url.Values{"canvas": {"Acme"}, "per_day": {"7000"}}), "/groups")
	b.wants(b.get("/groups"), 200, "no canvas that you may read has this name", "0 of 5,000")
	b.post("/crons/add", url.Values{"canvas": {"Acme Ltd"}, "name": {"hourly"}, "schedule": {"every hour"}, "time_zone": {"UTC"}, "missed": {"latest"}})
	b.wants(b.get("/crons?canvas=Acme+Ltd"), 200, "hourly")
	for _, text := range []string{"%00", "%ff", strings.Repeat("x", 300), "%1b"} {
		b.wants(b.get("/audit?canvas="+text), 400)
	}
}

// Who may read some canvases chooses them by their names, and does not learn whether another has one.
func TestNamesOfOtherCanvasesAreNotTold(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed().named("Acme Ltd")
	theirs := newBrowser(t, q.dashboard(dashboard.Config{Identify: as(access.Grant{Canvases: []eventqueue.CanvasID{elsewhere}, Verbs: access.Verbs()})}))
	there, missing := theirs.get("/events?canvas=Acme+Ltd"), theirs.get("/events?canvas=Acme+Inc")
	if there.Code != 400 || withoutTimes(there.Body.String()) != withoutTimes(missing.Body.String()) {
		t.Errorf("another canvas is answered with %d %s, and none with %d %s", there.Code, there.Body, missing.Code, missing.Body)
	}
	b := newBrowser(t, q.dashboard(dashboard.Config{Identify: as(access.Grant{Canvases: []eventqueue.CanvasID{{1}, elsewhere, seeded.Canvas}, Verbs: []access.Verb{access.Read}})}))
	b.wants(b.get("/failed?canvas=Acme+Ltd"), 200, `" selected>Acme Ltd</option>`, `">Elsewhere</option>`, ">01000000-0000-0000-0000-000000000000</option>", `href="/handlers?canvas=`+seeded.Canvas.String()+`"`)
}

// A page of more canvases than are looked up at once shows the names of some.
func TestNamesOfManyCanvasesAreBounded(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.exec(`INSERT INTO canvas_names (canvas_id, name) SELECT ('00000001-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, 'canvas ' || i FROM generate_series(1, $1) AS i`, inspect.MostNames+500)
	q.exec(`INSERT INTO event_workers (number, host, pid, version, handlers)
		SELECT w, 'host', 1, 'v1', jsonb_agg(jsonb_build_object('module', 'WORKER', 'name', 'greet', 'modifier', '_', 'canvas_id', ('00000001-0000-0000-0000-' || lpad((100 * w + i)::text, 12, '0'))))
		FROM generate_series(1, 12) AS w, generate_series(1, 100) AS i GROUP BY w`)
	page := newBrowser(t, q.dashboard(dashboard.Config{})).get("/workers").Body.String()
	if n := strings.Count(page, "<bdi>canvas "); n != inspect.MostNames {
		t.Errorf("%d canvases have names", n)
	}
}
