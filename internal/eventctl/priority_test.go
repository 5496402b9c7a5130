package eventctl

import (
	"strings"
	"testing"
)

// TestPriorityIsEmittedAndShown: an unknown one writes nothing, and a normal one is not shown.
func TestPriorityIsEmittedAndShown(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	line := func(more string) string {
		return `{"canvas_id": "` + canvasA + `", "module": "M", "name": "n", "modifier": "_", "value": 1` + more + "}\n"
	}
	emit := func(more ...string) []string { return append(emitArgs("1"), append(more, "--no-notify")...) }
	c.run(emit("--priority", "urgent")...).is(exitBadInput, "", `priority: is "urgent": use high, normal or low`)
	c.run(emit("--priority", "")...).is(exitBadInput, "", "--priority is empty: leave it out for an event of normal priority")
	file := c.file(line("") + line(`, "priority": "urgent"`))
	c.run("emit", "--file", file, "--no-notify").is(exitBadInput, "", `:2: priority: is "urgent": use high, normal or low`)
	c.run("emit", "--file", file, "--priority", "low").is(exitBadInput, "", "priority")
	if n := c.events(); n != 0 {
		t.Fatalf("%d events were written", n)
	}

	c.run(emit("--priority", "high")...).is(exitOK, "id 1", "")
	c.run(emit("--priority", "normal")...).is(exitOK, "id 2", "")
	c.run("emit", "--file", c.file(line(`, "priority": "low"`)+line("")), "--no-notify").is(exitOK, "ids 3 to 4", "")
	if got := one[string](c, `SELECT string_agg(coalesce(priority::text, 'NULL'), ' ' ORDER BY id) FROM events_v2`); got != "high NULL low NULL" {
		t.Errorf("the priorities are %s", got)
	}
	c.run("show", "1").is(exitOK, "priority  high\n", "")
	c.run("show", "3", "--json").is(exitOK, `"priority":"low"`, "")
	if out := c.run("show", "2").is(exitOK, "", "").out; strings.Contains(out, "priority") {
		t.Errorf("a normal one is shown as %s", out)
	}
	for priority, want := range map[string]string{"high": "1", "LOW": "3", "normal": "2 4"} {
		if got := c.listed("--priority", priority); got != want {
			t.Errorf("%s: events %s, want %s", priority, got, want)
		}
	}
	c.run("list", "--priority", "").is(exitBadInput, "", `--priority "" is unknown: use high, normal, low`)
}
