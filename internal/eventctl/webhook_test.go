package eventctl

import (
	"strings"
	"testing"
)

func TestWebhookListPrintsSources(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("webhook", "list").is(exitOK, "no sources of webhooks\n", "")
	c.run("webhook", "list", "--json").is(exitOK, `{"items":[]}`, "")
	c.exec(`INSERT INTO webhook_sources (source, canvas_id, scheme, served_at, received_at, refusals) VALUES
		('shop', '00000000-0000-0000-0000-000000000000', 'stripe', now(), now() - interval '90 s', '[{"at":"2024-02-03T04:05:06Z","outcome":"too old","reason":"the time stamp"}]'),
		('quiet', $1, '', now(), NULL, '[]')`, canvasA)
	c.exec(`INSERT INTO webhook_minutes (minute, source, canvas_id, outcome, requests)
		SELECT now() - m * interval '1 minute', 'shop', '00000000-0000-0000-0000-000000000000', o, 2 FROM unnest(ARRAY[1, 200]) AS m, unnest(ARRAY['accepted', 'too old', 'bad signature']) AS o`)
	out := c.run("webhook", "list").out
	for _, want := range []string{"shop", "stripe", "1m30s ago", "6 ", "12 ", "4 bad signature, 4 too old", "quiet", canvasA} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if doc := c.run("webhook", "list", "--json").out; !strings.Contains(doc, `"reason":"the time stamp"`) && !strings.Contains(doc, `"reason": "the time stamp"`) {
		t.Errorf("the document is\n%s", doc)
	}
}
