package eventctl

import (
	"strings"
	"testing"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

func TestStuckListsSuspectedEvents(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("stuck").is(exitOK, "no stuck events\n", "")
	c.run("stuck", "--json").is(exitOK, `{"items":[]}`, "")
	seed(c)
	c.exec(`UPDATE events_v2 SET notified_at = NULL WHERE id = 7`)
	c.run("stuck", "--attempts", "3").is(exitOK, "", "").golden("stuck")
	for args, want := range map[string]string{
		"": "1 4 7", "--canvas " + canvasB: "7", "--name greet": "1 4", "--module CRON": "", "--after 1": "4 7", "--limit 2": "1 4",
		"--for 100h": "4", "--attempts 3": "1 3 4 7", "--attempts 1 --canvas " + canvasA: "1 2 3 4", "--canvas " + canvasA + " --limit 1 --after 1": "4",
	} {
		var doc view.Page[view.StuckEvent]
		c.run(append([]string{"stuck", "--json"}, strings.Fields(args)...)...).is(exitOK, "", "").into(&doc)
		var ids []string
		for _, e := range doc.Items {
			ids = append(ids, e.ID.String())
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: events %s, want %s", args, got, want)
		}
	}
	c.run("stuck", "--limit", "2").is(exitOK, "there may be more: add --after 4\n", "")
}

func TestStuckPrintsJSON(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	var doc view.Page[view.StuckEvent]
	c.run("stuck", "--json", "--attempts", "3", "--after", "3", "--limit", "1").is(exitOK, `"reasons":["expired","repeated"],"stuck_since":"`, "").into(&doc)
	if len(doc.Items) != 1 || doc.Next != 4 {
		t.Fatalf("%+v", doc)
	}
	e := doc.Items[0]
	if e.State != string(inspect.Expired) || e.Attempts != 3 || e.Retries != 2 || e.NotifiedAt == nil || !e.Since.After(*e.LockedAt) {
		t.Errorf("%+v", e)
	}
}

// TestStuckEventCanBeRequeued follows the way that an operator goes.
func TestStuckEventCanBeRequeued(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	seed(c)
	c.run("stuck", "--canvas", canvasA).is(exitOK, "\n4   expired    1d2h ago", "")
	c.run("requeue", "1", "4").is(exitOK, "requeued 2 events\n", "")
	c.run("stuck", "--canvas", canvasA).is(exitOK, "no stuck events\n", "")
}
