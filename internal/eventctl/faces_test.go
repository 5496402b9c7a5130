package eventctl

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/httpapi"
	"eventsv2/internal/view"
	"eventsv2/test/testenv"
)

// seedFacts writes at least one of each fact, with every field that it may have.
func seedFacts(c *cli) {
	c.t.Helper()
	seed(c)
	c.counted()
	c.exec(`UPDATE events_v2 SET attributes = '{"user":"ada"}', parent_id = 1, ordering_key = 'k', priority = 'high', group_state = 3, claim_id = (7::bigint << 31) + 5 WHERE id = 4`)
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, reason, actor, enqueued_at, created_at) VALUES
		(104, $1, 'WORKER', 'greet', '_', '4', 'CANCELLED', 0, 0, 'a duplicate', 'ann', now() - interval '1 h', now() - interval '30 min')`, canvasA)
	c.exec(`INSERT INTO event_workers (number, host, pid, version, handlers, started_at, stopped_at, slots, busy, hung, oldest_since) VALUES
		(7, 'a', 12, 'v1', ('[{"module": "WORKER", "name": "greet", "modifier": "_"}, {"module": "WORKER", "name": "greet", "modifier": "x", "canvas_id": "' || $1 || '"}]')::jsonb,
			now() - interval '50 h', NULL, 8, 3, 1, now() - interval '1 h'),
		(8, 'b', 13, 'v1', '[7]', now() - interval '49 h', now() - interval '5 h', NULL, NULL, NULL, NULL)`, canvasA)
	c.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, modifier, prefix, rate, released_to, released_at, actor, reason) VALUES
		('pause', $1, 'WORKER', 'gre', 'bulk', true, 500, 17, now(), 'bob', 'a flood')`, canvasA)
	c.exec(`UPDATE scheduling_rules SET until = now() + interval '1 day' WHERE rule_type = 'block'`)
	c.exec(`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, 'keys', 3)`, canvasA)
	for _, words := range [][]string{
		{"limit", "rate", "set", "--no-notify", "--canvas", canvasA, "--per-minute", "60"},
		{"limit", "rate", "set", "--no-notify", "--canvas", canvasA, "--module", "WORKER", "--name", "greet", "--per-day", "5", "--mode", "approximate"},
		cronArgs("set", "nightly", "--schedule", "30 2 * * *", "--time-zone", "Europe/Berlin", "--skip-if-paused", "--skip-if-running"),
		{"token", "create", "--name", "shop", "--verbs", "emit,read", "--canvas", canvasA, "--for", "1h"},
	} {
		c.run(words...).is(exitOK, "", "")
	}
	c.exec(`INSERT INTO cron_records (cron_id, slot, event_id, skipped) SELECT id, now(), 0, 'paused' FROM cron_definitions`)
	c.exec(`INSERT INTO webhook_sources (source, canvas_id, scheme, served_at, received_at, refusals) VALUES
		('shop', $1, 'stripe', now(), now() - interval '90 s', '[{"at":"2024-02-03T04:05:06Z","outcome":"too old","reason":"the time stamp"}]'),
		('quiet', '00000000-0000-0000-0000-000000000000', '', now(), NULL, '[]')`, canvasA)
	c.exec(`INSERT INTO webhook_minutes (minute, source, canvas_id, outcome, requests) VALUES (now() - interval '1 minute', 'shop', $1, 'accepted', 2)`, canvasA)
}

// api serves the HTTP API on the database of the program, and returns what makes requests with every right.
func (c *cli) api() func(method, path, body string) any {
	c.t.Helper()
	store, tokens := pgstore.New(c.pool), access.NewTokens("", c.pool)
	queue, err := silentQueue(store, eventqueue.Limits{})
	if err != nil {
		c.t.Fatal(err)
	}
	operations, err := operate.NewOperations(store, queue, testenv.Logger(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{Store: store, Queue: queue, Bulk: operations, Access: &access.Authenticator{Tokens: tokens}, Logger: testenv.Logger(c.t)})
	if err != nil {
		c.t.Fatal(err)
	}
	_, secret, err := tokens.Create(c.ctx, audit.Actor{Name: "test", Via: "test"}, access.NewToken{Name: "t", Grant: access.Grant{Verbs: access.Verbs()}})
	if err != nil {
		c.t.Fatal(err)
	}
	return func(method, path, body string) any {
		c.t.Helper()
		r := httptest.NewRequestWithContext(c.ctx, method, "http://api.example/v1"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			c.t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return decoded(c.t, w.Body.Bytes())
	}
}

func decoded(t *testing.T, text []byte) (document any) {
	t.Helper()
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return document
}

// within is a part of a document, whose path is written like event or attempts; "" is all of it.
func within(document any, path string) any {
	if path == "" {
		return document
	}
	return document.(map[string]any)[path]
}

// without leaves out what one face alone can know.
func without(document any, fields ...string) any {
	if object, is := document.(map[string]any); is {
		for _, field := range fields {
			delete(object, field)
		}
	}
	return document
}

// empty reports whether a document is an empty list, or an object with nothing but one: two of those prove nothing.
func empty(document any) bool {
	if object, is := document.(map[string]any); is {
		if items, has := object["items"]; has {
			return empty(items)
		}
		return len(object) == 0
	}
	items, is := document.([]any)
	return document == nil || is && len(items) == 0
}

// TestEachFactIsTheSameInEveryFace compares what eventctl --json writes with what the HTTP API answers.
func TestEachFactIsTheSameInEveryFace(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seedFacts(c)
	ask := c.api()
	of := "?canvas_id=" + canvasA
	var begun view.Operation
	c.run("cancel", "--no-notify", "--canvas", canvasA, "--name", "greet", "--older-than", "1h", "--yes", "--json").is(exitOK, "", "operation").into(&begun)
	operation, by := begun.ID.String(), begun.Actor
	for _, fact := range []struct{ command, part, path, of string }{
		{"list --canvas " + canvasA, "", "/events" + of, ""},
		{"list --canvas " + canvasA + " --limit 2 --after 1", "", "/events" + of + "&limit=2&after=1", ""},
		{"log list --newest --canvas " + canvasA, "", "/history" + of, ""},
		{"log list --newest --status failed --canvas " + canvasA, "", "/history" + of + "&state=failed", ""},
		{"log list --newest --error luck --newer-than 240h --canvas " + canvasA, "", "/history" + of + "&error=luck&newer_than_seconds=864000", ""},
		{"log groups --canvas " + canvasA, "", "/history/groups" + of, ""},
		{"show 4", "event", "/events/4", ""},
		{"show 6", "event", "/events/6", ""},
		{"show 101", "event", "/events/101", ""},
		{"show 4", "attempts", "/events/4/attempts", "items"},
		{"show 4", "reasons", "/events/4/explain", "items"},
		{"explain 104", "", "/events/104/explain", ""},
		{"tree 4", "", "/events/1/tree", ""},
		{"rule list --canvas " + canvasA, "", "/rules" + of, ""},
		{"limit concurrency list --canvas " + canvasA, "", "/limits/concurrency" + of, ""},
		{"limit rate list --canvas " + canvasA, "", "/limits/rate" + of, ""},
		{"cron list --canvas " + canvasA, "", "/crons" + of, ""},
		{"cron preview --canvas " + canvasA + " --name nightly", "items", "/crons/next" + of + "&name=nightly", "items"},
		{"cron show --canvas " + canvasA + " --name nightly", "next_slots", "/crons/next" + of + "&name=nightly", "items"},
		{"stats --since 1h --canvas " + canvasA, "", "/stats" + of + "&per=all", ""},
		{"worker list", "", "/workers", ""},
		{"webhook list", "", "/webhooks", ""},
		{"token list", "", "/tokens", ""},
		{"audit list --limit 3", "", "/audit?limit=3", ""},
		{"audit list --actor " + by, "", "/audit?actor=" + url.QueryEscape(by), ""},
		{"operation list", "", "/bulk", ""},
		{"operation show " + operation, "", "/bulk/" + operation, ""},
	} {
		line := without(within(decoded(t, []byte(c.run(append(strings.Fields(fact.command), "--json")...).is(exitOK, "", "").out)), fact.part), "as_of")
		answer := without(within(ask(http.MethodGet, fact.path, ""), fact.of), "as_of", "version")
		if empty(answer) {
			t.Errorf("%s answers nothing", fact.path)
		}
		if diff := cmp.Diff(line, answer, sameButForAges); diff != "" {
			t.Errorf("eventctl %s and %s differ:\n%s", fact.command, fact.path, diff)
		}
	}
}

// sameButForAges compares texts without how long ago something was, since a second may begin between two faces.
var sameButForAges = cmp.Comparer(func(a, b string) bool {
	return ages.ReplaceAllString(a, "") == ages.ReplaceAllString(b, "")
})

var ages = regexp.MustCompile(`\b(\d+[dhms])+\b`)

// TestEachChangeIsTheSameInEveryFace makes changes twice: the second one has a result that does not depend on who makes it.
func TestEachChangeIsTheSameInEveryFace(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ask := c.api()
	const target = `"canvas_id":"` + canvasA + `","module":"WORKER","name":"gr"`
	on := []string{"--canvas", canvasA, "--module", "WORKER"}
	for _, change := range []struct {
		command            []string
		method, path, body string
	}{
		{append([]string{"pause", "--prefix", "gr", "--modifier", "bulk", "--reason", "a flood"}, on...), "POST", "/handlers/pause", `{` + target + `,"prefix":true,"modifier":"bulk"}`},
		{append([]string{"unpause", "--no-notify", "--prefix", "gr", "--modifier", "x"}, on...), "POST", "/handlers/unpause", `{` + target + `,"prefix":true,"modifier":"x"}`},
		{append([]string{"limit", "concurrency", "set", "--no-notify", "--name", "gr", "--max", "3"}, on...), "PUT", "/limits/concurrency", `{` + target + `,"max_running":3}`},
		{append([]string{"limit", "rate", "set", "--no-notify", "--name", "gr", "--per-day", "3"}, on...), "PUT", "/limits/rate", `{` + target + `,"per_day":3}`},
	} {
		c.run(change.command...)
		line := without(decoded(t, []byte(c.run(append(change.command, "--json")...).out)), "known")
		if diff := cmp.Diff(line, ask(change.method, change.path, change.body)); diff != "" {
			t.Errorf("eventctl %s and %s differ:\n%s", strings.Join(change.command, " "), change.path, diff)
		}
	}
	c.run(cronArgs("set", "nightly", "--schedule", "every day")...).is(exitOK, "", "")
	off := decoded(t, []byte(c.run(cronArgs("disable", "nightly", "--json")...).is(exitOK, "", "").out))
	if diff := cmp.Diff(off, ask(http.MethodPost, "/crons/disable", `{"canvas_id":"`+canvasA+`","name":"nightly"}`)); diff != "" {
		t.Errorf("a cron definition that is switched off differs:\n%s", diff)
	}
	line := decoded(t, []byte(c.run("replay", "--no-notify", "--canvas", canvasA, "--name", "gr", "--status", "failed", "--newer-than", "1h", "--yes", "--json").is(exitOK, "", "operation").out))
	if diff := cmp.Diff(line, ask(http.MethodGet, "/bulk/"+within(line, "id").(string), "")); diff != "" {
		t.Errorf("a replay and its operation over HTTP differ:\n%s", diff)
	}
}
