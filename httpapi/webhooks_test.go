package httpapi_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

// TestWebhooksAreListed with what became of their requests, to callers who may read all canvases.
func TestWebhooksAreListed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.root(access.Read)
	c.wants(200, `{"items":[]}`, all, "GET", "/webhooks", "")
	counter := received.NewCounter(pgsession.On(c.Pool, ""), func(time.Duration) time.Duration { return 0 }, testenv.Logger(t))
	shop := webhook.Source{Name: "shop", Scheme: "stripe"}
	counter.Declare([]webhook.Source{shop, {Name: "quiet", Canvas: rig.Canvas}})
	counter.Observe(shop, webhook.Accepted, nil)
	counter.Observe(shop, webhook.BadTime, errors.New("the time stamp is old"))
	if err := counter.HandIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	var listed struct {
		Items []struct {
			Name, Scheme string
			Canvas       string     `json:"canvas_id"`
			ReceivedAt   *time.Time `json:"received_at"`
			Hour, Day    map[string]int64
			Refusals     []struct{ Outcome, Reason string }
		}
	}
	if err := json.Unmarshal([]byte(c.wants(200, "", all, "GET", "/webhooks", "")), &listed); err != nil || len(listed.Items) != 2 {
		t.Fatalf("%+v, %v", listed, err)
	}
	want := map[string]int64{"accepted": 1, "too old": 1}
	quiet, got := listed.Items[0], listed.Items[1]
	if quiet.Name != "quiet" || quiet.Canvas != rig.Canvas.String() || quiet.ReceivedAt != nil || len(quiet.Day) != 0 {
		t.Errorf("a source that has received nothing is %+v", quiet)
	}
	if got.Name != "shop" || got.Scheme != "stripe" || got.Canvas != "" || got.ReceivedAt == nil || !maps.Equal(got.Hour, want) || !maps.Equal(got.Day, want) {
		t.Errorf("the source is %+v", got)
	}
	if len(got.Refusals) != 1 || got.Refusals[0].Outcome != "too old" || got.Refusals[0].Reason != "the time stamp is old" {
		t.Errorf("its refusals are %+v", got.Refusals)
	}
	c.wants(403, "read on all canvases", c.token(rig.Canvas, access.Verbs()...), "GET", "/webhooks", "")
}
