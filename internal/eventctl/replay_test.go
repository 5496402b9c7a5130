package eventctl

import (
	"strings"
	"testing"
)

// retain has n completed events in the history.
func retain(c *cli, n int) {
	c.t.Helper()
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		SELECT nextval('events_id_seq'), $1, 'WORKER', 'greet', '_', n::text, 'COMPLETED', 0, 1, now() FROM generate_series(1, $2::int) AS n`, canvasA, n)
}

func TestReplayEmitsRetainedEvents(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	c.run("replay", "--name", "greet", "--yes").is(exitBadInput, "", "RETAIN_HISTORY=true")
	c.run("replay", "--name", "greet", "--dry-run").is(exitBadInput, "", "RETAIN_HISTORY=true")
	retain(c, 3)
	c.run("replay", "--name", "greet", "--rate", "60/m", "--dry-run").is(exitOK, "would replay 3 events, within 2s\n", "")
	if n := one[int](c, `SELECT (SELECT count(*) FROM events_v2) + (SELECT count(*) FROM bulk_operations)`); n != 0 {
		t.Errorf("a dry run wrote %d rows", n)
	}
	c.run("replay", "--name", "greet", "--yes").is(exitOK, "replayed 3 events\n", "3 events to replay")
	if n := len(server.Messages()); n != 3 {
		t.Errorf("%d notifications, want 3", n)
	}
	var doc manyDoc
	c.run("replay", "--json", "--no-notify", "--name", "greet", "--yes").is(exitOK, "", `{"operation":"`).into(&doc)
	if doc.Changed != 3 || doc.State != "done" || doc.Verb != "replay" {
		t.Errorf("%+v", doc)
	}
	c.run("replay", "--resume", doc.ID.String()).is(exitOK, "replayed 3 events\n", "")
	again := one[string](c, `SELECT min(id)::text FROM events_v2`)
	original := one[string](c, `SELECT min(id)::text FROM event_log`)
	c.run("show", again).is(exitOK, "replayed from  "+original, "")
	c.run("explain", again).is(exitOK, "It repeats event "+original+", which was replayed.", "")
	c.run("tree", again).is(exitOK, "(replayed from "+original+")", "")
	for _, command := range []string{"show", "explain", "tree"} {
		c.run(command, again, "--json").is(exitOK, `"replayed_from":`+original, "")
	}
}

func TestReplayRefusesBadInput(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	retain(c, 1)
	for want, args := range map[string]string{
		"give a filter":                "",
		"not both":                     "--name greet",
		"is no rate":                   "--name greet --yes --rate 5",
		"is out of range":              "--name greet --yes --rate 20000/s",
		`--rate "x/s" is no rate`:      "--name greet --yes --rate x/s",
		"exclude each other":           "--name greet --resume 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		"is no uuid":                   "--resume 5",
		`"waiting" is unknown`:         "--name greet --status waiting --yes",
		"the filter is empty":          "--status completed --yes",
		"is out of range: it must be ": "--name greet --yes --rate 1/h --rate 0/s",
	} {
		c.run(append([]string{"replay"}, strings.Fields(args)...)...).is(exitBadInput, "", want)
	}
	c.run("replay", "--resume", "6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11").is(exitNotFound, "", "there is no operation")
	if n := c.events(); n != 0 {
		t.Errorf("%d events were emitted", n)
	}
}
