package eventctl

import (
	"strings"
	"testing"
	"time"

	"eventsv2/internal/view"
)

func TestPauseAndUnpauseChangeTheState(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	c.run("emit", "--no-notify", "--file", c.file(lines(1200))).is(exitOK, "1200", "")
	greet := func(command string, more ...string) result {
		return c.run(scopeArgs(command, canvasA, "WORKER", "greet", more...)...)
	}
	on := " WORKER/greet on canvas " + canvasA
	greet("pause").is(exitOK, "paused"+on+"\n", "")
	greet("pause").is(exitOK, "already paused"+on+" by the user (", "")
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

func TestUnpauseWithoutPubSubLeavesEventsPending(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("emit", "--no-notify", "--file", c.file(lines(1100))).is(exitOK, "1100", "")
	c.exec(`UPDATE events_v2 SET notified_at = now()`)
	c.run(scopeArgs("pause", canvasA, "WORKER", "greet")...).is(exitOK, "paused", "")
	c.run(scopeArgs("unpause", canvasA, "WORKER", "greet")...).is(exitBadInput, "", "PUBSUB_PROJECT_ID")
	c.run(scopeArgs("unpause", canvasA, "WORKER", "greet", "--no-notify")...).
		is(exitOK, "; left to the relay to notify: 1100 events\n", "")
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 1100 {
		t.Errorf("%d notifications of 1100 are pending", n)
	}
}

func TestRulesPrintJSON(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	c.run(emitArgs("1")...).is(exitOK, "", "")
	var added, lifted view.RuleChange
	c.run(scopeArgs("pause", canvasA, "WORKER", "greet", "--json")...).is(exitOK, "", "").into(&added)
	if !added.Changed || !*added.Known || added.Notified != nil || added.Type != "pause" || added.Canvas.String() != canvasA {
		t.Errorf("%+v", added)
	}
	c.run(scopeArgs("block", canvasA, "WORKER", "greet")...).is(exitOK, "", "")
	c.run(scopeArgs("unpause", canvasA, "WORKER", "greet", "--json")...).is(exitOK, "", "").into(&lifted)
	if !lifted.Changed || *lifted.Notified != 0 || len(lifted.Left) != 1 || lifted.Left[0].Type != "block" {
		t.Errorf("%+v", lifted)
	}
	c.run(scopeArgs("unpause", canvasB, "WORKER", "greet", "--json")...).is(exitNotFound, `"changed":false`, `{"error":"`).into(&lifted)
	if lifted.Changed {
		t.Errorf("%+v", lifted)
	}
	var doc view.Page[view.Rule]
	c.run("rule", "list", "--json").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 1 || doc.Items[0].Type != "block" || doc.Items[0].Name != "greet" {
		t.Errorf("%+v", doc)
	}
}

func TestRuleForAnUnknownHandlerWarns(t *testing.T) {
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

func TestRuleListPrintsRules(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("rule", "list").is(exitOK, "no rules\n", "")
	c.run("rule", "list", "--json").is(exitOK, `{"items":[]}`, "")
	c.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, created_at) VALUES
		('block', $1, 'WORKER', 'greet', '2024-02-03 04:05:06Z'::timestamptz),
		('pause', $1, 'WORKER', 'greet', '2024-02-03 04:05:07Z'::timestamptz),
		('pause', $2, 'CRON', E'two\nlines', '2024-02-03 04:05:08Z'::timestamptz)`, canvasA, canvasB)
	c.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, modifier, prefix, created_at, rate, released_to, released_at, actor) VALUES
		('pause', $1, 'WORKER', 'gre', 'bulk', true, '2024-02-03 04:05:09Z'::timestamptz, 500, 17, now(), 'bob')`, canvasA)
	c.exec(`UPDATE scheduling_rules SET reason = E'orders\ntwice', actor = 'ann', until = 'infinity' WHERE rule_type = 'block'`)
	c.run("rule", "list").is(exitOK, "", "").golden("rules")
	r := c.run("rule", "list", "--canvas", canvasB).is(exitOK, "CRON", "")
	if strings.Contains(r.out, canvasA) {
		t.Errorf("rules of another canvas:\n%s", r.out)
	}
}

func TestRuleHasReasonActorAndEnd(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(emitArgs("1", "--no-notify")...).is(exitOK, "", "")
	pause := func(more ...string) result { return c.run(scopeArgs("pause", canvasA, "WORKER", "greet", more...)...) }
	pause("--until", "tomorrow").is(exitBadInput, "", `--until "tomorrow" is neither a time nor a duration: write it like`)
	pause("--until", "").is(exitBadInput, "", `--until "" is neither a time nor a duration`)
	pause("--until", "-15s").is(exitBadInput, "", `--until "-15s" is too short: a duration must be positive`)
	pause("--until", "0").is(exitBadInput, "", `--until "0" is too short`)
	pause("--until", "2020-01-31T09:00:00Z").is(exitBadInput, "", "until: that time has passed by the clock of the database")
	pause("--reason", strings.Repeat("x", 1025)).is(exitBadInput, "", "reason: is 1025 bytes long: the limit is 1024")
	if n := one[int](c, `SELECT count(*) FROM scheduling_rules`); n != 0 {
		t.Fatalf("%d rules were added", n)
	}
	var added view.RuleChange
	pause("--until", "2999-01-31T09:00:00+01:00", "--reason", "why", "--json").is(exitOK, "", "").into(&added)
	if !added.Changed || added.Reason != "why" || added.Actor == "" || added.Until == nil || !added.Until.Equal(time.Date(2999, 1, 31, 8, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", added)
	}
	var brief view.RuleChange
	c.run(scopeArgs("block", canvasA, "WORKER", "greet", "--until", "90m", "--json")...).is(exitOK, "", "").into(&brief)
	if left := time.Until(*brief.Until); left < time.Hour || left > 90*time.Minute {
		t.Errorf("a rule of 90m holds for %s", left)
	}
	c.run(scopeArgs("unblock", canvasA, "WORKER", "greet", "--no-notify")...).is(exitOK, "", "")
	pause("--actor", "bob", "--reason", "another").is(exitOK, "already paused", "").is(exitOK, ", because of: why, until 2999-01-31T08:00:00Z", "")
	var doc view.Page[view.Rule]
	c.run("rule", "list", "--json").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 1 || doc.Items[0].Reason != "why" || doc.Items[0].Actor != added.Actor {
		t.Errorf("%+v", doc)
	}
}

func TestRulesTakeAModifierOrAPrefix(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	c.run(emitArgs("1", "--no-notify")...).is(exitOK, "", "")
	rule := func(command string, more ...string) result {
		return c.run(append([]string{command, "--canvas", canvasA, "--module", "WORKER"}, more...)...)
	}
	for _, wrong := range []struct {
		flags []string
		want  string
	}{
		{[]string{}, "name prefix"},
		{[]string{"--name", "greet", "--prefix", "gr"}, "name prefix"},
		{[]string{"--prefix", ""}, "--prefix: is empty"},
		{[]string{"--name", "greet", "--modifier", ""}, "--modifier: is empty"},
	} {
		rule("pause", wrong.flags...).is(exitBadInput, "", wrong.want)
		rule("unpause", wrong.flags...).is(exitBadInput, "", wrong.want)
	}
	for _, rate := range []string{"", "0/s", "-1/s", "500", "500/m", "100001/s", "1.5/s"} {
		rule("unpause", "--name", "greet", "--rate", rate).is(exitBadInput, "", `--rate "`+rate+`" is no rate: write how many events in a second, 1/s to 100000/s`)
	}
	if n := one[int](c, `SELECT count(*) FROM scheduling_rules`); n != 0 {
		t.Fatalf("%d rules were added", n)
	}
	on := " on canvas " + canvasA
	rule("pause", "--prefix", "gr").is(exitOK, "paused WORKER/gr…"+on+"\n", "")
	rule("pause", "--prefix", "gr").is(exitOK, "already paused WORKER/gr…"+on, "")
	rule("pause", "--prefix", "x").is(exitOK, "paused", "check the spelling")
	rule("pause", "--name", "greet", "--modifier", "_").is(exitOK, "paused WORKER/greet/_"+on+"\n", "")
	rule("unpause", "--name", "greet").is(exitNotFound, "", "WORKER/greet"+on+" was not paused; still paused by the user: WORKER/gr…"+on+"; still paused by the user: WORKER/greet/_"+on)
	rule("unpause", "--prefix", "gr").is(exitOK, "unpaused WORKER/gr…"+on+"; still paused by the user: WORKER/greet/_"+on+"\n", "")
	rule("unpause", "--name", "greet", "--modifier", "_").is(exitOK, "; notified 1 event\n", "")
}

// One second's worth runs at once: no more than two of three events with one in a second.
func TestUnpauseTakesARate(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	c.run("emit", "--no-notify", "--file", c.file(lines(3))).is(exitOK, "", "")
	greet := func(command string, more ...string) result {
		return c.run(scopeArgs(command, canvasA, "WORKER", "greet", more...)...)
	}
	greet("pause", "--until", "2999-01-31T09:00:00Z").is(exitOK, "", "")
	var lifted view.RuleChange
	greet("unpause", "--rate", "1/s", "--json").is(exitOK, "", "").into(&lifted)
	if !lifted.Changed || !lifted.GoesOn || lifted.Rate != 1 || *lifted.Notified < 1 || *lifted.Notified > 2 || len(lifted.Left) != 0 {
		t.Errorf("%+v", lifted)
	}
	var doc view.Page[view.Rule]
	c.run("rule", "list", "--json").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 1 || doc.Items[0].Rate != 1 || int(doc.Items[0].ReleasedTo) < *lifted.Notified || doc.Items[0].Until != nil {
		t.Errorf("%+v", doc)
	}
	c.run("rule", "list").is(exitOK, "lifted at 1/s", "")
	c.run("explain", "3").is(exitOK, "and the rule is being lifted: 1 events are let run in each second, in the order of their ids, so far those up to "+doc.Items[0].ReleasedTo.String(), "")
	greet("pause").is(exitOK, "paused", "")
	c.run("explain", "1").is(exitOK, "Its handler is paused by the user", "")
	greet("unpause", "--rate", "100000/s").is(exitOK, "; notified ", "")
	greet("unpause").is(exitNotFound, "", "was not paused")
}
