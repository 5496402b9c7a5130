package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/test/testenv"
)

// keyed adds n events of an ordering key, which wait for each other.
func (q *queue) keyed(canvas eventqueue.CanvasID, key string, n int) (ids []eventqueue.EventID) {
	q.t.Helper()
	for range n {
		q.insert(eventqueue.NewEvent{Canvas: canvas, Module: seeded.Module, Name: "ship", Modifier: "_", Value: []byte(`{}`), OrderingKey: key})
		ids = append(ids, q.ids[len(q.ids)-1])
	}
	if _, err := q.store.Advance(testenv.Context(q.t), nil, ids); err != nil {
		q.t.Fatal(err)
	}
	return ids
}

// The page of groups says who is first, why it does not run, and how many wait behind it; and what is used of limits.
func TestGroupsPageShowsHeadAndWaitingEvents(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	ctx, ship := testenv.Context(t), eventqueue.Scope{Canvas: seeded.Canvas, Module: seeded.Module, Name: "ship"}
	ids := q.keyed(seeded.Canvas, "order "+script, 4)
	q.keyed(elsewhere, "order elsewhere", 2)
	rule := operate.RuleOf(operate.PauseRule, ship)
	rule.Reason = "The warehouse moves. " + script
	if _, err := q.store.AddRule(ctx, rule); err != nil {
		t.Fatal(err)
	}
	if _, err := q.store.SetConcurrencyLimit(ctx, operate.ConcurrencyLimit{Canvas: seeded.Canvas, Module: "WORKER", Name: "render", Max: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.store.SetRateLimit(ctx, operate.RateLimit{Scope: ship, PerMinute: 60, PerDay: 5000, Mode: ratelimit.Exact}); err != nil {
		t.Fatal(err)
	}
	q.exec(`UPDATE rate_counters SET minute_count = 60, minute_at = date_bin('1 minute', clock_timestamp() + interval '1 minute', 'epoch'), day_at = date_bin('1 day', clock_timestamp() + interval '1 day', 'epoch'), day_count = 70`)
	pages := q.dashboard(dashboard.Config{})
	body := get(t, pages, "/groups").Body.String()
	for _, want := range []string{"/events/" + ids[0].String(), "order &lt;script&gt;", "The warehouse moves. &lt;script&gt;", `data-h="Behind it">3<`, "order elsewhere",
		"WORKER / render", "60 of 60", "70 of 5,000"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q:\n%s", want, body)
		}
	}
	if inline.MatchString(body) {
		t.Errorf("the page has %q", inline.FindString(body))
	}
	own := q.dashboard(dashboard.Config{Identify: as(access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: []access.Verb{access.Read}})})
	if body := get(t, own, "/groups").Body.String(); strings.Contains(body, "order elsewhere") || !strings.Contains(body, "order &lt;script&gt;") {
		t.Errorf("who may read one canvas sees:\n%s", body)
	}
	for _, wrong := range []string{"/groups?canvas=x", "/groups?after=!", "/groups?after=e30x"} {
		if w := get(t, pages, wrong); w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d", wrong, w.Code)
		}
	}
}

// The pages of groups have each group once.
func TestPagesOfGroups(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.exec(`INSERT INTO event_groups (event_id, stage, canvas_id, group_key, admitted)
		SELECT 10 * i + j, 1, $1::uuid, 'key order ' || i, j = 0 FROM generate_series(1, 45) AS i, generate_series(0, 1) AS j`, [16]byte(seeded.Canvas))
	pages, seen := q.dashboard(dashboard.Config{}), 0
	for path, looks := "/groups", 0; path != "" && looks < 9; looks++ {
		body := get(t, pages, path).Body.String()
		seen += strings.Count(body, "<small>ordering key</small>")
		path = nextPage(body)
	}
	if seen != 45 {
		t.Errorf("the pages have %d groups of 45", seen)
	}
	if body := get(t, newQueue(t).dashboard(dashboard.Config{}), "/groups").Body.String(); !strings.Contains(body, "--ordering-key order-1044") {
		t.Errorf("the empty page does not say what to do:\n%s", body)
	}
}
