package eventctl

import (
	"fmt"
	"strings"
	"testing"
)

// found are the ids that find prints, the newest first.
func (c *cli) found(args ...string) string {
	c.t.Helper()
	var doc foundDoc
	c.run(append([]string{"find", "--json"}, args...)...).is(exitOK, "", "").into(&doc)
	ids := make([]string, len(doc.Items))
	for i, e := range doc.Items {
		ids[i] = fmt.Sprint(e.ID)
	}
	if doc.More {
		ids = append(ids, "…")
	}
	return strings.Join(ids, " ")
}

func TestFindSearchesQueueAndHistory(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("find", "--attribute", "order=17").is(exitNotFound, "", "no event is found")
	c.exec(`INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, attributes, unique_key) VALUES
		(7, $1, 'WORKER', 'ship', '_', '1', '{"order":"17","user":"ada"}', 'order 17'), (3, $1, 'WORKER', 'mail', '_', '1', '{"order":"17"}', NULL),
		(8, $2, 'WORKER', 'ship', '_', '1', '{"order":"18"}', 'order 18')`, canvasA, canvasB)
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, attributes, unique_key, ordering_key, reason, actor) VALUES
		(1, $1, 'WORKER', 'mail', '_', '1', 'COMPLETED', 0, 1, NULL, now(), '{"order":"17"}', 'order 17', NULL, NULL, NULL),
		(2, $1, 'WORKER', 'bill', '_', '1', 'FAILED', 2, 3, 'no luck', now(), '{"order":"17"}', NULL, 'ada', NULL, NULL),
		(9, $1, 'WORKER', 'bill', '_', '1', 'CANCELLED', 0, 0, NULL, now(), '{"order":"17","user":"bob"}', NULL, NULL, 'a mistake', 'ada'),
		(5, $1, 'WORKER', 'bill', '_', '1', 'COMPLETED', 0, 1, NULL, now(), NULL, NULL, NULL, NULL, NULL)`, canvasA)
	for args, want := range map[string]string{
		"--attribute order=17":                                "9 7 3 2 1",
		"--attribute order=17 --attribute user=bob":           "9",
		"--attribute order=17 --name ship":                    "7",
		"--attribute order=18 --canvas " + canvasB:            "8",
		"--unique-key order·17":                               "7 1",
		"--ordering-key ada":                                  "2",
		"--unique-key order·17 --limit 1":                     "7 …",
		"--attribute order=17 --limit 1":                      "9 …",
		"--attribute order=17 --limit 3":                      "9 7 3 …",
		"--attribute order=17 --limit 5":                      "9 7 3 2 1",
		"--ordering-key ada --attribute order=17 --name bill": "2",
	} {
		words := strings.Fields(args)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "·", " ")
		}
		if got := c.found(words...); got != want {
			t.Errorf("%s: events %s, want %s", args, got, want)
		}
	}
	r := c.run("find", "--attribute", "order=17").is(exitOK, "", "")
	for _, state := range []string{"waiting", "completed", "failed", "cancelled", "no luck", "a mistake (ada)"} {
		if !strings.Contains(r.out, state) {
			t.Errorf("%q is missing:\n%s", state, r.out)
		}
	}
	c.run("find", "--attribute", "order=17", "--limit", "2").is(exitOK, "there may be more: raise --limit", "")
	c.run("find", "--attribute", "order=17", "--canvas", canvasB).is(exitNotFound, "", "no event is found")
	for want, args := range map[string][]string{
		"at least one of the flags": {}, "--unique-key is empty": {"--unique-key", ""}, "has no =": {"--attribute", "order"}, "--limit is 0": {"--unique-key", "k", "--limit", "0"},
	} {
		c.run(append([]string{"find"}, args...)...).is(exitBadInput, "", want)
	}
}

// TestFindReadsTheWholeHistory: what is searched for lies behind more events than one call reads.
func TestFindReadsTheWholeHistory(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, unique_key)
		SELECT i, $1, 'WORKER', 'mail', '_', '1', 'COMPLETED', 0, 1, now(), 'order ' || i FROM generate_series(1, 120000) AS i`, canvasA)
	c.exec(`INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, unique_key)
		SELECT 200000 + i, $1, 'WORKER', 'mail', '_', '1', 'waits ' || i FROM generate_series(1, 60000) AS i`, canvasA)
	if got := c.found("--unique-key", "order 17"); got != "17" {
		t.Errorf("found %s", got)
	}
	if got := c.found("--unique-key", "waits 1"); got != "200001" {
		t.Errorf("found %s", got)
	}
}
