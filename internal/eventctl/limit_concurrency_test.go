package eventctl

import (
	"testing"

	"eventsv2/internal/view"
)

func TestConcurrencyLimitsAreSetListedAndRemoved(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("limit", "concurrency", "list", "--canvas", canvasA).is(exitOK, "no concurrency limits\n", "")
	c.run("limit", "concurrency", "list", "--canvas", canvasA, "--json").is(exitOK, `{"items":[]}`, "")
	for _, what := range [][]string{{}, {"--module", "WORKER", "--name", "greet"}, {"--key", "a\u009b"}, {"--every-key"}} {
		of := append([]string{"--canvas", canvasA, "--no-notify"}, what...)
		bad := len(what) > 0 && what[0] == "--key"
		if bad {
			c.run(append([]string{"limit", "concurrency", "set", "--max", "3"}, of...)...).is(exitBadInput, "", "ordering_key")
			of[len(of)-1] = "a b"
		}
		c.run(append([]string{"limit", "concurrency", "remove"}, of...)...).is(exitNotFound, "", "has no limit")
		c.run(append([]string{"limit", "concurrency", "set", "--max", "3"}, of...)...).is(exitOK, "3 at once of ", "")
		c.run(append([]string{"limit", "concurrency", "set", "--max", "4"}, of...)...).is(exitOK, "4 at once of ", "")
	}
	c.run("limit", "concurrency", "list", "--canvas", canvasA).is(exitOK, "", "").golden("limit_concurrency")
	var doc view.Page[view.ConcurrencyLimit]
	c.run("limit", "concurrency", "list", "--canvas", canvasA, "--json").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 4 || doc.Items[0].MaxRunning != 4 || doc.Items[1].Name != "greet" || doc.Items[2].OrderingKey != "a b" || !doc.Items[3].EveryKey {
		t.Errorf("%+v", doc.Items)
	}
	c.run("limit", "concurrency", "remove", "--canvas", canvasA, "--every-key", "--no-notify").is(exitOK, "removed the limit of every ordering key", "")
	for args, problem := range map[string][]string{
		"--max is 0":          {"set", "--canvas", canvasA, "--max", "0"},
		"--max is -1":         {"set", "--canvas", canvasA, "--max", "-1"},
		"--max is 3000000000": {"set", "--canvas", canvasA, "--max", "3000000000"},
		"--key is empty":      {"set", "--canvas", canvasA, "--max", "1", "--key", ""},
		"max":                 {"set", "--canvas", canvasA},
		"canvas":              {"set", "--max", "1"},
		"name":                {"set", "--canvas", canvasA, "--max", "1", "--module", "M"},
		"every-key":           {"set", "--canvas", canvasA, "--max", "1", "--key", "a", "--every-key"},
	} {
		c.run(append([]string{"limit", "concurrency"}, problem...)...).is(exitBadInput, "", args)
	}
}

// TestWaitingEventOfAGroupIsShown: show says behind which event one waits, list shows the state,
// and stuck leaves it out.
func TestWaitingEventOfAGroupIsShown(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for range 2 {
		c.run("emit", "--canvas", canvasA, "--module", "WORKER", "--name", "greet", "--value", "1", "--ordering-key", "cart 7", "--no-notify").is(exitOK, "emitted 1 event", "")
	}
	file := c.file(`{"canvas_id": "` + canvasA + `", "module": "M", "name": "n", "modifier": "_", "value": 1, "ordering_key": "cart 7"}
`)
	c.run("emit", "--file", file, "--no-notify").is(exitOK, "emitted 1 event", "")
	c.run("emit", "--file", c.file(`{"canvas_id": "`+canvasA+`", "module": "M", "name": "n", "modifier": "_", "value": 1, "ordering_key": ""}
`), "--no-notify").is(exitBadInput, "", "ordering_key: is empty")
	c.run("emit", "--canvas", canvasA, "--module", "M", "--name", "n", "--value", "1", "--ordering-key", "").is(exitBadInput, "", "--ordering-key is empty")
	c.run("show", "2").is(exitOK, "1 at a time, behind event 1", "")
	c.exec(`SELECT events_v2_advance('{}', '{}', '{1,2,3}', NULL)`)
	c.exec(`UPDATE events_v2 SET delay_until = now() - interval '1 h', enqueued_at = now() - interval '1 h'`)
	c.run("show", "3").is(exitOK, `It waits in the ordering group of ordering key "cart 7" of canvas `+canvasA+`, 1 at a time, behind event 1`, "")
	c.run("show", "3").is(exitOK, "key", "")
	if got := c.listed("--state", "behind"); got != "2 3" {
		t.Errorf("behind are %s", got)
	}
	c.run("list", "--json").is(exitOK, `"ordering_key":"cart 7"`, "")
	c.run("stuck").is(exitOK, "\n1   unclaimed", "")
	var doc view.Page[view.StuckEvent]
	c.run("stuck", "--json").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 1 || doc.Items[0].OrderingKey != "cart 7" {
		t.Errorf("stuck are %+v", doc.Items)
	}
}
