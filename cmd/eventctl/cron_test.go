package main

import (
	"regexp"
	"strings"
	"testing"
)

func cronArgs(command, name string, more ...string) []string {
	return append([]string{"cron", command, "--canvas", canvasA, "--name", name}, more...)
}

func TestCron(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("cron", "ls").is(exitOK, "no cron definitions\n", "")
	c.run("cron", "ls", "--json").is(exitOK, `{"definitions":[]}`, "")
	c.run(cronArgs("add", "nightly", "--schedule", "30  2 * * mon-fri", "--time-zone", "Europe/Berlin", "--missed", "all")...).
		is(exitOK, "added nightly: 30 2 * * mon-fri, Europe/Berlin\n", "")
	c.run(cronArgs("add", "nightly", "--schedule", "every day")...).is(exitBadInput, "", "--replace")
	c.run(cronArgs("add", "nightly", "--schedule", "every day", "--replace")...).is(exitOK, "added nightly: every day, UTC\n", "")
	var added cronDoc
	c.run(cronArgs("add", "often", "--schedule", "every minute", "--json")...).is(exitOK, "", "").into(&added)
	if added.ID == 0 || added.Name != "often" || !added.Enabled || added.Missed != "latest" || added.LastSlot != nil {
		t.Errorf("%+v", added)
	}
	c.run(cronArgs("disable", "often")...).is(exitOK, "disabled often\n", "")
	c.exec(`INSERT INTO cron_records (cron_id, slot, event_id) SELECT id, '2024-02-03T04:05:00Z', 1 FROM cron_definitions WHERE name = 'nightly'`)
	c.run("cron", "ls").is(exitOK, "", "").golden("cron_ls")
	c.run("cron", "ls", "--canvas", canvasB).is(exitOK, "no cron definitions\n", "")
	c.run(cronArgs("enable", "often", "--json")...).is(exitOK, `"enabled":true`, "")
	c.run(cronArgs("rm", "often")...).is(exitOK, "removed often\n", "")
	for _, command := range []string{"rm", "next", "enable", "disable"} {
		c.run(cronArgs(command, "often")...).is(exitNotFound, "", `"often"`)
	}
}

func TestCronNext(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(cronArgs("add", "noon", "--schedule", "0 12 * * *")...).is(exitOK, "", "")
	r := c.run(cronArgs("next", "noon", "--count", "3")...).is(exitOK, "", "")
	if !regexp.MustCompile(`^(\d{4}-\d\d-\d\dT12:00:00Z\n){3}$`).MatchString(r.out) {
		t.Errorf("the next slots are:\n%s", r.out)
	}
	var doc struct{ Slots []string }
	c.run(cronArgs("next", "noon", "--json")...).is(exitOK, "", "").into(&doc)
	if len(doc.Slots) != 5 || !strings.HasSuffix(doc.Slots[4], "T12:00:00Z") {
		t.Errorf("%v", doc.Slots)
	}
}
