package dashboard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

// The page of webhooks says what each source has received and refused, and why; who may not read all canvases does
// not see it.
func TestWebhooksPageShowsRequestsAndRefusals(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	pages := q.dashboard(dashboard.Config{})
	if body := get(t, pages, "/webhooks").Body.String(); !strings.Contains(body, "No source of webhooks is served") {
		t.Errorf("the empty page:\n%s", body)
	}
	counter := received.NewCounter(pgsession.On(q.store.Pool(), ""), func(time.Duration) time.Duration { return 0 }, testenv.Logger(t))
	shop := webhook.Source{Name: "shop", Scheme: "stripe"}
	counter.Declare([]webhook.Source{shop, {Name: "quiet", Canvas: seeded.Canvas}})
	counter.Observe(shop, webhook.Accepted, nil)
	counter.Observe(shop, webhook.BadTime, errors.New("the time stamp is old "+script))
	counter.Observe(shop, webhook.BadTime, errors.New("again"+reversed))
	if err := counter.HandIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	body := get(t, pages, "/webhooks").Body.String()
	for _, want := range []string{"<bdi>shop</bdi>", "stripe", "all canvases", "<bdi>quiet</bdi>", "never", "too old</span> 2, 2 in the last hour", "the time stamp is old &lt;script&gt;", ">3<small"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q:\n%s", want, body)
		}
	}
	if inline.MatchString(body) || strings.Contains(body, "\u202e") {
		t.Error("the page has what its policy refuses, or a character that is not printable")
	}
	own := q.dashboard(dashboard.Config{Identify: as(access.Grant{Canvases: []eventqueue.CanvasID{seeded.Canvas}, Verbs: []access.Verb{access.Read}})})
	if w := get(t, own, "/webhooks"); w.Code != 403 || strings.Contains(w.Body.String(), `href="/webhooks`) {
		t.Errorf("who may read one canvas: status %d", w.Code)
	}
}
