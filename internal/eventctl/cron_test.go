package eventctl

import (
	"regexp"
	"strings"
	"testing"

	"eventsv2/internal/view"
)

func cronArgs(command, name string, more ...string) []string {
	return append([]string{"cron", command, "--canvas", canvasA, "--name", name}, more...)
}

func TestCronChangesDefinitions(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("cron", "list").is(exitOK, "no cron definitions\n", "")
	c.run("cron", "list", "--json").is(exitOK, `{"items":[]}`, "")
	c.run(cronArgs("set", "nightly", "--schedule", "30  2 * * mon-fri", "--time-zone", "Europe/Berlin", "--missed", "all")...).
		is(exitOK, "set nightly: 30 2 * * mon-fri, Europe/Berlin\n", "")
	c.run(cronArgs("set", "nightly", "--schedule", "every day")...).is(exitOK, "set nightly: every day, UTC\n", "")
	var added view.Cron
	c.run(cronArgs("set", "often", "--schedule", "every minute", "--json")...).is(exitOK, "", "").into(&added)
	if added.ID == 0 || added.Name != "often" || !added.Enabled || added.Missed != "latest" || added.LastSlot != nil {
		t.Errorf("%+v", added)
	}
	c.run(cronArgs("disable", "often")...).is(exitOK, "disabled often\n", "")
	c.exec(`INSERT INTO cron_records (cron_id, slot, event_id) SELECT id, '2024-02-03T04:05:00Z', 1 FROM cron_definitions WHERE name = 'nightly'`)
	c.run("cron", "list").is(exitOK, "", "").golden("cron_list")
	c.run("cron", "list", "--canvas", canvasB).is(exitOK, "no cron definitions\n", "")
	c.run(cronArgs("enable", "often", "--json")...).is(exitOK, `"enabled":true`, "")
	c.run(cronArgs("remove", "often")...).is(exitOK, "removed often\n", "")
	for _, command := range []string{"remove", "show", "enable", "disable"} {
		c.run(cronArgs(command, "often")...).is(exitNotFound, "", `"often"`)
	}
}

func TestCronShowPrintsTheSlots(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(cronArgs("set", "noon", "--schedule", "0 12 * * *")...).is(exitOK, "", "")
	r := c.run(cronArgs("show", "noon", "--count", "3")...).is(exitOK, "schedule   0 12 * * *\n", "")
	if !regexp.MustCompile(`last slot  -\n(next slot  \d{4}-\d\d-\d\dT12:00:00Z\n){3}$`).MatchString(r.out) {
		t.Errorf("the definition is shown as\n%s", r.out)
	}
	var doc struct {
		view.Cron
		Next []view.Slot `json:"next_slots"`
	}
	c.run(cronArgs("show", "noon", "--json")...).is(exitOK, "", "").into(&doc)
	if doc.Name != "noon" || doc.Schedule != "0 12 * * *" || len(doc.Next) != 5 || !strings.HasSuffix(doc.Next[4].Local, "T12:00:00Z") {
		t.Errorf("%+v", doc)
	}
}

func TestCronApplyMatchesTheFile(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(cronArgs("set", "old", "--schedule", "every day")...).is(exitOK, "", "")
	c.run(cronArgs("set", "other", "--schedule", "every day")...).is(exitOK, "", "")
	c.run(cronArgs("disable", "other")...).is(exitOK, "", "")
	c.run("cron", "set", "--canvas", canvasB, "--name", "foreign", "--schedule", "every day").is(exitOK, "", "")
	file := c.file("definitions:\n" +
		"  - {canvas: " + canvasA + ", name: nightly, schedule: 30 2 * * *, time_zone: Europe/Berlin, missed: all, skip_if_paused: true}\n" +
		"  - {canvas: " + canvasA + ", name: other, schedule: every hour}\n")
	const rest = "nightly on canvas " + canvasA + ": 30 2 * * *, Europe/Berlin\n"
	c.run("cron", "apply", file, "--prune", "--dry-run").is(exitOK, "would add "+rest+"would change other on canvas "+canvasA+": every hour, UTC; it stays disabled\nwould remove old on canvas "+canvasA+"\n", "")
	c.run("cron", "apply", file).is(exitOK, "added "+rest+"changed other on canvas "+canvasA+": every hour, UTC; it stays disabled\n", "")
	c.run("cron", "apply", file).is(exitOK, "nothing differs\n", "")
	c.run(cronArgs("show", "other")...).is(exitOK, "every hour", "")
	c.run("cron", "list", "--json").is(exitOK, `"enabled":false`, "")
	c.run("cron", "apply", file, "--prune").is(exitOK, "removed old on canvas "+canvasA+"\n", "")
	c.run("cron", "apply", file, "--prune", "--json").is(exitOK, `{"dry_run":false,"items":[]}`, "")
	c.run("cron", "list", "--canvas", canvasB).is(exitOK, "foreign", "")
	c.run("cron", "apply", c.file("canvases: ["+canvasB+"]\n"), "--prune").is(exitOK, "removed foreign on canvas "+canvasB+"\n", "")
	for text, want := range map[string]string{
		"definitions: 7": "line 1: definitions: is a number and not a list",
		"definitions:\n  - {canvas: " + canvasA + ", name: a, schedule: sometimes}\n":                     "line 2: ",
		"definitions:\n  - {canvas: x, name: a, schedule: every day}\n":                                   "line 2: canvas: ",
		"definitions:\n  - {canvas: " + canvasA + ", name: a, schedule: every day, tz: UTC}\n":            `unknown key "tz"`,
		"definitions:\n" + strings.Repeat("  - {canvas: "+canvasA+", name: a, schedule: every day}\n", 2): "twice",
	} {
		if r := c.run("cron", "apply", c.file(text)); r.status == exitOK || !strings.Contains(r.err, want) {
			t.Errorf("%q: %+v, want %q", text, r, want)
		}
	}
}
