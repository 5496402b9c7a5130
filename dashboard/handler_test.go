package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/testenv"
)

// handlerForm is a form about a handler, with further fields in pairs.
func handlerForm(scope eventqueue.Scope, fields ...string) url.Values {
	form := url.Values{"canvas": {scope.Canvas.String()}, "module": {scope.Module}, "name": {scope.Name}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return form
}

// A handler is paused with a reason and an end, and unpaused; blocked, and unblocked. Each is in the audit log.
func TestHandlerCanBePausedFromItsPage(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed().connected(seeded.Name)
	b := q.steering(access.Verbs()...)
	at := "/handler?" + handlerForm(seeded).Encode()
	b.wants(b.get("/handlers"), 200, strings.ReplaceAll("/handler?canvas="+seeded.Canvas.String(), "&", "&amp;"))
	b.wants(b.get(at), 200, "Nothing holds it back", `action="/handler/pause"`, `action="/handler/block"`)
	b.leads(b.post("/handler/pause", handlerForm(seeded, "reason", "the bank "+script, "until", "60m")), at)
	b.wants(b.get(at), 200, "It is paused.", "the bank &lt;script&gt;", "test:ada", `action="/handler/unpause"`)
	b.wants(b.get("/events/"+q.ids[0].String()), 200, "See what holds the handler back", `action="/handler/unpause"`, "Unpause the handler")
	until := q.one(`SELECT (until - now() BETWEEN interval '50 minutes' AND interval '61 minutes')::text FROM scheduling_rules WHERE handler_name = $1`, seeded.Name)
	if until != "true" {
		t.Error("it is not paused for an hour")
	}
	b.leads(b.post("/handler/pause", handlerForm(seeded, "reason", "again")), at)
	b.wants(b.get(at), 200, "It was paused already", "the bank")
	b.leads(b.post("/handler/block", handlerForm(seeded, "reason", "by order", "until", time.Now().UTC().Add(48*time.Hour).Format("2006-01-02 15:04"))), at)
	b.wants(b.get(at), 200, "It is blocked.", "by order", `action="/handler/unblock"`)
	for _, lift := range []string{"unpause", "unblock"} {
		b.leads(b.post("/handler/"+lift, handlerForm(seeded)), at)
		b.wants(b.get(at), 200, "It is no longer")
		b.leads(b.post("/handler/"+lift, handlerForm(seeded)), at)
		b.wants(b.get(at), 200, "any more.")
	}
	for _, action := range []string{"pause", "block", "unpause", "unblock"} {
		if n := q.audited(action); n != "1" {
			t.Errorf("%s rows of %s", n, action)
		}
	}
}

// A handler whose worker has it with another modifier than that of an event says so, as the page of the event does, and is not open.
func TestHandlerNamesAModifierWithoutAWorker(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed().connected(seeded.Name, "render_report")
	b := q.steering(access.Verbs()...)
	at := "/handler?" + handlerForm(seeded).Encode()
	const noneHas = "No live worker, of which there are 1, has its handler WORKER/send_invoice/formal."
	b.wants(b.get(at), 200, "Nothing holds it back")
	if list := b.get("/handlers"); strings.Contains(list.Body.String(), "No worker for modifier") {
		t.Error("a modifier lacks a worker before there is an event with it")
	}
	q.insert(eventqueue.NewEvent{Canvas: seeded.Canvas, Module: seeded.Module, Name: seeded.Name, Modifier: "formal", Value: []byte(`1`)})
	page := b.get(at)
	b.wants(page, 200, `<span class="state dead">no worker</span>`, "No worker for modifier formal. "+noneHas)
	if strings.Contains(page.Body.String(), "Nothing holds it back") {
		t.Error("its page says that nothing holds it back")
	}
	b.wants(b.get("/handlers"), 200, "<small><bdi>No worker for modifier formal. "+noneHas)
	b.wants(b.get("/events/"+q.ids[len(q.ids)-1].String()), 200, noneHas)
}

// Wider and narrower rules are added on the page of a handler, and both it and the page of handlers show them.
func TestAddWiderAndNarrowerRules(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	b := q.steering(access.Verbs()...)
	at := "/handler?" + handlerForm(seeded).Encode()
	b.leads(b.post("/handler/pause", handlerForm(seeded, "begins", "send", "reason", "a flood")), at)
	b.leads(b.post("/handler/block", handlerForm(seeded, "modifier", "formal")), at)
	b.wants(b.get(at), 200, "with all whose names begin with send", "a flood", "only with modifier formal", `action="/handler/pause"`)
	b.wants(b.get("/handlers"), 200, "with all whose names begin with send", "only with modifier formal")
	if got := q.one(`SELECT string_agg(concat_ws(' ', rule_type, handler_name, modifier, prefix), ', ' ORDER BY rule_type) FROM scheduling_rules WHERE handler_name <> 'held' AND canvas_id = $1`, seeded.Canvas.String()); got != "pause send  t, block send_invoice formal f" {
		t.Errorf("the rules are %s", got)
	}
	b.wants(b.post("/handler/pause", handlerForm(seeded, "modifier", "no\nname")), 422, "modifier: ")
}

// What holds a handler with others back, or only a part of it, is lifted on its page as well, and by and by.
func TestLiftWiderAndNarrowerRules(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed().connected(seeded.Name)
	b := q.steering(access.Verbs()...)
	at := "/handler?" + handlerForm(seeded).Encode()
	for _, scope := range []operate.RuleScope{
		{Scope: eventqueue.Scope{Canvas: seeded.Canvas, Module: seeded.Module, Name: "send"}, Prefix: true},
		{Scope: seeded, Modifier: "formal"},
	} {
		if _, err := q.store.AddRule(testenv.Context(t), operate.Rule{Type: operate.PauseRule, RuleScope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	b.wants(b.get(at), 200, "with all whose names begin with send", "only with modifier formal")
	b.leads(b.post("/handler/unpause", handlerForm(seeded, "of", "send", "prefix", "1", "rate", "1")), at)
	b.wants(b.get(at), 200, "It is being lifted", "1 events per second")
	b.leads(b.post("/handler/unpause", handlerForm(seeded, "of", "send", "prefix", "1")), at)
	b.leads(b.post("/handler/unpause", handlerForm(seeded, "modifier", "formal")), at)
	b.wants(b.get(at), 200, "It is no longer paused", "Nothing holds it back")
}

// Users pause and administrators block; without the verb there is no button, and the form is refused. So is another
// canvas, and a form with a mistake, which is shown again.
func TestInvalidPauseIsRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	held := eventqueue.Scope{Canvas: seeded.Canvas, Module: "WORKER", Name: "held"}
	if _, err := q.store.AddRule(testenv.Context(t), operate.RuleOf(operate.BlockRule, held)); err != nil {
		t.Fatal(err)
	}
	before := q.one(`SELECT string_agg(r::text, '' ORDER BY id) FROM scheduling_rules AS r`)
	at := "/handler?" + handlerForm(held).Encode()
	for _, test := range []struct {
		verb access.Verb
		may  []string
	}{{access.Operate, []string{"pause", "unpause"}}, {access.Administer, []string{"block", "unblock"}}, {access.ReadValues, nil}} {
		b := q.steering(access.Read, test.verb)
		free, of := mainPart(b.get("/handler?"+handlerForm(seeded).Encode()).Body.String()), mainPart(b.get(at).Body.String())
		for _, action := range []string{"pause", "unpause", "block", "unblock"} {
			may := false
			for _, allowed := range test.may {
				may = may || allowed == action
			}
			if strings.Contains(free+of, `action="/handler/`+action+`"`) != may {
				t.Errorf("with %s there is a button to %s: %t", test.verb, action, !may)
			}
			if !may {
				b.wants(b.post("/handler/"+action, handlerForm(held)), http.StatusForbidden)
			}
			b.wants(b.post("/handler/"+action, handlerForm(eventqueue.Scope{Canvas: elsewhere, Module: "WORKER", Name: "x"})), http.StatusForbidden)
		}
	}
	shows := newBrowser(t, q.dashboard(dashboard.Config{}))
	if page := mainPart(shows.get(at).Body.String()); strings.Contains(page, "<button") {
		t.Errorf("a dashboard that only shows has a button: %s", page)
	}
	shows.wants(shows.post("/handler/pause", handlerForm(held)), http.StatusForbidden)
	b := q.steering(access.Verbs()...)
	for want, form := range map[string]url.Values{
		"that time has passed": handlerForm(seeded, "until", "2020-01-01 00:00", "reason", "keep "+script),
		"no time zone that":    handlerForm(seeded, "until", "2099-01-01 00:00", "zone", "../Moon "+script),
		"neither a time nor":   handlerForm(seeded, "until", "soon"),
		"-1h&#34; is too short: a duration must be positive": handlerForm(seeded, "until", "-1h"),
		"0&#34; is too short: a duration must be positive":   handlerForm(seeded, "until", " 0 "),
		"02:30:00&#34; does not exist in Europe/Berlin":      handlerForm(seeded, "until", "2099-03-29T02:30", "zone", "Europe/Berlin"),
		"at most 1,024 bytes":                                handlerForm(seeded, "reason", strings.Repeat("x", 2000)),
		"keep &lt;script&gt;":                                handlerForm(seeded, "until", "2020-01-01 00:00", "reason", "keep "+script),
	} {
		b.wants(b.post("/handler/pause", form), http.StatusUnprocessableEntity, want, `role="alert"`)
	}
	for _, wrong := range []url.Values{handlerForm(eventqueue.Scope{Canvas: seeded.Canvas}), {"canvas": {"x"}}, handlerForm(eventqueue.Scope{Canvas: seeded.Canvas, Module: "W", Name: "\x1b"})} {
		b.wants(b.post("/handler/pause", wrong), http.StatusBadRequest)
		b.wants(b.get("/handler?"+wrong.Encode()), http.StatusBadRequest)
	}
	b.leads(b.post("/handler/unpause", handlerForm(held, "rate", "many")), at)
	b.wants(b.get(at), 200, "are a number from 1 to 100,000")
	if after := q.one(`SELECT string_agg(r::text, '' ORDER BY id) FROM scheduling_rules AS r`); after != before || q.audited("") != "0" {
		t.Errorf("the rules were\n%s\nand are\n%s", before, after)
	}
}
