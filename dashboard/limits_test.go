package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"eventsv2/access"
)

// Limits are set, replaced and removed on their page, each with a row in the audit log; a mistake changes nothing and is named.
func TestLimitsAreSetAndRemovedOnTheirPage(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	b := q.steering(access.Verbs()...)
	canvas := seeded.Canvas.String()
	here := "/groups?canvas=" + canvas
	form := func(fields ...string) url.Values { return handlerForm(seeded, fields...) }
	limits := func() string {
		return q.one(`SELECT concat_ws('; ', (SELECT string_agg(concat_ws(' ', module, name, per_minute, per_day, mode), ', ') FROM rate_limits),
			(SELECT string_agg(group_key || ' ' || max_running, ', ' ORDER BY group_key) FROM concurrency_limits))`)
	}
	b.leads(b.post("/limits/rate/set", form("per_minute", "60", "mode", "exact")), here)
	b.wants(b.get(here), 200, "The limit is set.", "0 of 60", `action="/limits/rate/remove"`)
	b.leads(b.post("/limits/rate/set", form("per_day", "5000", "mode", "approximate")), here)
	b.leads(b.post("/limits/concurrency/set", form("max_running", "2")), here)
	b.leads(b.post("/limits/concurrency/set", url.Values{"canvas": {canvas}, "every_key": {"1"}, "max_running": {"1"}}), here)
	b.wants(b.get(here), 200, "0 of 5,000", "each ordering key", `action="/limits/concurrency/remove"`)
	want := limits()
	if !strings.Contains(want, "WORKER send_invoice") || !strings.Contains(want, "5000 approximate") || strings.Count(want, ",") != 1 {
		t.Errorf("the limits are %s", want)
	}
	for mistake, send := range map[string]url.Values{
		"per_minute: &#34;many&#34; is no number":       {"to": {"rate"}, "per_minute": {"many"}},
		"per_minute and per_day: one of them is needed": {"to": {"rate"}},
		"mode: is &#34;loose&#34;":                      {"to": {"rate"}, "per_day": {"1"}, "mode": {"loose"}},
		"max_running: &#34;0&#34; is no number from 1":  {"to": {"concurrency"}, "max_running": {"0"}},
		"max_running: &#34;&#34; is no number from 1":   {"to": {"concurrency"}},
	} {
		fields := form()
		for key, value := range send {
			fields[key] = value
		}
		b.leads(b.post("/limits/"+send.Get("to")+"/set", fields), here)
		b.wants(b.get(here), 200, "Nothing was changed", mistake)
	}
	b.leads(b.post("/limits/rate/set", url.Values{"canvas": {"mine"}, "per_day": {"1"}}), "/groups")
	b.wants(b.get("/groups"), 200, "is not a uuid")
	if got := limits(); got != want {
		t.Errorf("mistakes have changed the limits to %s", got)
	}
	b.leads(b.post("/limits/rate/remove", form()), here)
	b.wants(b.get(here), 200, "The limit is removed")
	b.leads(b.post("/limits/rate/remove", form()), here)
	b.wants(b.get(here), 200, "There is no such limit any more.")
	b.leads(b.post("/limits/concurrency/remove", form()), here)
	b.leads(b.post("/limits/concurrency/remove", url.Values{"canvas": {canvas}, "every_key": {"1"}}), here)
	if got := limits(); got != "" {
		t.Errorf("the limits are %s", got)
	}
	if got := q.audited("limit"); got != "7" { // four set, three removed
		t.Errorf("%s changes are audited", got)
	}
}

// Limits are changed by administrators of the canvas only.
func TestReaderCannotChangeLimits(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	admin := q.steering(access.Verbs()...)
	admin.post("/limits/rate/set", handlerForm(seeded, "per_day", "1"))
	b := q.steering(access.Read, access.Operate)
	if text := mainPart(b.get("/groups").Body.String()); strings.Contains(text, "/limits/") || !strings.Contains(text, "0 of 1") {
		t.Error("a reader has buttons, or no page")
	}
	for _, change := range []string{"rate/set", "rate/remove", "concurrency/set", "concurrency/remove"} {
		b.wants(b.post("/limits/"+change, handlerForm(seeded, "per_day", "2", "max_running", "2")), 403, "You may not do this")
	}
	if got := q.one(`SELECT per_day::text FROM rate_limits`); got != "1" {
		t.Errorf("the limit is %s", got)
	}
}
