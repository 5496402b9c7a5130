package eventctl

import (
	"strings"
	"testing"
)

func TestPauseAndUnpause(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	c.run("emit", "--no-notify", "--file", c.file(lines(1200))).is(exitOK, "1200", "")
	greet := func(command string, more ...string) result {
		return c.run(scopeArgs(command, canvasA, "WORKER", "greet", more...)...)
	}
	on := " WORKER/greet on canvas " + canvasA
	greet("pause").is(exitOK, "paused"+on+"\n", "")
	greet("pause").is(exitOK, "already paused"+on+"\n", "")
	greet("block").is(exitOK, "blocked"+on+"\n", "")
	c.run("list", "--state", "blocked", "--limit", "2").is(exitOK, "blocked", "")
	greet("unpause").is(exitOK, "unpaused"+on+"; still blocked by an admin\n", "")
	greet("unpause").is(exitNotFound, "", "WORKER/greet on canvas "+canvasA+" was not paused; still blocked by an admin")
	if n := len(server.Messages()); n != 0 {
		t.Errorf("%d notifications while it is blocked", n)
	}
	greet("unblock").is(exitOK, "unblocked"+on+"; notified 1200 events\n", "")
	greet("unblock").is(exitNotFound, "", "was not blocked")
	if n := len(server.Messages()); n != 1200 {
		t.Errorf("%d notifications for 1200 events", n)
	}
}

func TestUnpauseWithoutPubSub(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("emit", "--no-notify", "--file", c.file(lines(1100))).is(exitOK, "1100", "")
	c.exec(`UPDATE events_v2 SET notified_at = now()`)
	c.run(scopeArgs("pause", canvasA, "WORKER", "greet")...).is(exitOK, "paused", "")
	c.run(scopeArgs("unpause", canvasA, "WORKER", "greet")...).is(exitBadInput, "", "PUBSUB_PROJECT_ID")
	c.run(scopeArgs("unpause", canvasA, "WORKER", "greet", "--no-notify")...).
		is(exitOK, "; left to the relay to notify: 1100 events\n", "")
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 1100 {
		t.Errorf("%d notifications of 1100 are owed", n)
	}
}

func TestRulesAsJSON(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	c.run(emitArgs("1")...).is(exitOK, "", "")
	var added, lifted ruleChange
	c.run(scopeArgs("pause", canvasA, "WORKER", "greet", "--json")...).is(exitOK, "", "").into(&added)
	if !added.Changed || !added.Known || added.Notified != nil || added.Rule != "pause" || added.Canvas.String() != canvasA {
		t.Errorf("%+v", added)
	}
	c.run(scopeArgs("block", canvasA, "WORKER", "greet")...).is(exitOK, "", "")
	c.run(scopeArgs("unpause", canvasA, "WORKER", "greet", "--json")...).is(exitOK, "", "").into(&lifted)
	if !lifted.Changed || *lifted.Notified != 0 || len(lifted.Left) != 1 || lifted.Left[0] != "block" {
		t.Errorf("%+v", lifted)
	}
	c.run(scopeArgs("unpause", canvasB, "WORKER", "greet", "--json")...).is(exitNotFound, `"changed":false`, `{"error":"`).into(&lifted)
	if lifted.Changed {
		t.Errorf("%+v", lifted)
	}
	var doc struct{ Rules []ruleDoc }
	c.run("rule", "list", "--json").is(exitOK, "", "").into(&doc)
	if len(doc.Rules) != 1 || doc.Rules[0].Rule != "block" || doc.Rules[0].Name != "greet" {
		t.Errorf("%+v", doc)
	}
}

func TestARuleForAnUnknownHandlerIsDoneWithAWarning(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(scopeArgs("pause", canvasA, "WORKER", "gr\u202eet")...).is(exitOK, `paused WORKER/gr\u202eet`,
		`warning: no event of WORKER/gr\u202eet on canvas `+canvasA+` is waiting at the moment; check the spelling if there should be`)
	c.run(scopeArgs("pause", canvasA, "WORKER", "greet", "--json")...).is(exitOK, `"known":false`, "")
	c.run("cron", "set", "--canvas", canvasA, "--name", "nightly", "--schedule", "every day").is(exitOK, "", "")
	c.run(scopeArgs("pause", canvasA, "CRON", "nightly")...).is(exitOK, "paused", "")
	c.run(scopeArgs("pause", canvasB, "CRON", "nightly")...).is(exitOK, "paused", "check the spelling")
	if n := one[int](c, `SELECT count(*) FROM scheduling_rules`); n != 4 {
		t.Errorf("%d rules of 4 were added", n)
	}
}

func TestListRules(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("rule", "list").is(exitOK, "no rules\n", "")
	c.run("rule", "list", "--json").is(exitOK, `{"rules":[]}`, "")
	c.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, created_at) VALUES
		('block', $1, 'WORKER', 'greet', '2024-02-03 04:05:06Z'::timestamptz),
		('pause', $1, 'WORKER', 'greet', '2024-02-03 04:05:07Z'::timestamptz),
		('pause', $2, 'CRON', E'two\nlines', '2024-02-03 04:05:08Z'::timestamptz)`, canvasA, canvasB)
	c.run("rule", "list").is(exitOK, "", "").golden("rules")
	r := c.run("rule", "list", "--canvas", canvasB).is(exitOK, "CRON", "")
	if strings.Contains(r.out, canvasA) {
		t.Errorf("rules of another canvas:\n%s", r.out)
	}
}
