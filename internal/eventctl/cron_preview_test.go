package eventctl

import (
	"os"
	"strings"
	"testing"
	"time"

	"eventsv2/internal/view"
	"eventsv2/test/testenv"
)

// previewed is the answer of cron preview --json.
type previewed struct {
	Definition *view.Cron
	Schedule   string
	Words      string
	TimeZone   string `json:"time_zone"`
	Items      []view.Slot
}

// A schedule needs no database. The page shows the program's output.
func TestCronPreviewTakesASchedule(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t)}
	berlin := []string{"cron", "preview", "--schedule", "30  2 * * *", "--time-zone", "Europe/Berlin", "--after"}
	r := c.run(append(berlin, "2025-03-28T12:00:00Z", "--count", "3")...).is(exitOK, "", "")
	page, err := os.ReadFile("../../docs/cron.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "--after 2025-03-28T12:00:00Z --count 3\n"+r.out+"```") {
		t.Errorf("the page does not show\n%s", r.out)
	}
	var doc previewed
	c.run(append(berlin, "2025-10-25T22:00:00+02:00", "--json")...).is(exitOK, "", "").into(&doc)
	if doc.Definition != nil || doc.Schedule != "30 2 * * *" || doc.Words != "At 02:30" || doc.TimeZone != "Europe/Berlin" || len(doc.Items) != 5 {
		t.Fatalf("%+v", doc)
	}
	first := doc.Items[0]
	if first.Local != "2025-10-26T02:30:00+02:00" || first.Slot.Format(time.RFC3339) != "2025-10-26T00:30:00Z" ||
		first.Note != "On 2025-10-26 the clocks go back from 03:00 to 02:00: 02:30 comes twice, and is due the first time only." || doc.Items[1].Note != "" {
		t.Errorf("%+v", doc.Items)
	}
	c.run("cron", "preview", "--schedule", "every fortnight", "--count", "100").is(exitOK, "in words   every fortnight\ntime zone  UTC\n", "")
}

func TestCronPreviewTakesADefinition(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(cronArgs("preview", "nightly")...).is(exitNotFound, "", `"nightly"`)
	c.run(cronArgs("set", "nightly", "--schedule", "30 2 * * *", "--time-zone", "America/New_York")...).is(exitOK, "", "")
	c.run(cronArgs("disable", "nightly")...).is(exitOK, "", "")
	c.run(cronArgs("preview", "nightly", "--after", "2025-03-08T12:00:00Z", "--count", "1")...).is(exitOK, "time zone  America/New_York\nenabled    no\n\n", "")
	var doc previewed
	c.run(cronArgs("preview", "nightly", "--after", "2025-03-08T12:00:00Z", "--json")...).is(exitOK, "", "").into(&doc)
	if doc.Definition == nil || doc.Definition.Name != "nightly" || doc.Definition.Enabled || len(doc.Items) != 5 || doc.Items[0].Local != "2025-03-09T03:00:00-04:00" ||
		doc.Items[0].Note != "On 2025-03-09 the clocks go forward from 02:00 to 03:00: 02:30 is due at 03:00 instead." {
		t.Errorf("%+v", doc)
	}
	// Without --after they equal those of cron show, by the database's clock.
	var next struct {
		Next []view.Slot `json:"next_slots"`
	}
	c.exec(`UPDATE cron_definitions SET starts_at = '2040-01-01T00:00:00Z'`)
	c.run(cronArgs("preview", "nightly", "--json")...).is(exitOK, "", "").into(&doc)
	c.run(cronArgs("show", "nightly", "--json")...).is(exitOK, "", "").into(&next)
	if len(next.Next) != 5 || doc.Items[4] != next.Next[4] || !strings.HasPrefix(next.Next[0].Local, "2040-01-01T02:30:00") {
		t.Errorf("preview has %v, show %v", doc.Items, next.Next)
	}
}

func TestCronPreviewRefusesBadInput(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t)}
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":               {nil, "[schedule name] is required"},
		"both":                  {[]string{"--schedule", "every day", "--canvas", canvasA, "--name", "a"}, "[canvas schedule] were all set"},
		"a definition's zone":   {[]string{"--time-zone", "UTC", "--canvas", canvasA, "--name", "a"}, "[canvas time-zone] were all set"},
		"half a definition":     {[]string{"--canvas", canvasA}, "[schedule name] is required"},
		"the other half":        {[]string{"--name", "a"}, "--canvas is missing"},
		"no canvas":             {[]string{"--canvas", "7", "--name", "a"}, `"7"`},
		"a bad schedule":        {[]string{"--schedule", "0 25 * * *"}, `hour "25"`},
		"a schedule that never": {[]string{"--schedule", "0 0 30 2 *"}, "never comes true"},
		"an unknown zone":       {[]string{"--schedule", "every day", "--time-zone", "Europe/Atlantis"}, `time zone "Europe/Atlantis" is unknown`},
		"an empty zone":         {[]string{"--schedule", "every day", "--time-zone", ""}, "--time-zone is empty"},
		"none":                  {[]string{"--schedule", "every day", "--count", "0"}, "--count is 0: it must be from 1 to 100"},
		"too many":              {[]string{"--schedule", "every day", "--count", "101"}, "--count is 101"},
		"no time":               {[]string{"--schedule", "every day", "--after", "tomorrow"}, `--after "tomorrow" is not a time`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.run(append([]string{"cron", "preview"}, tt.args...)...)
			if r.status != exitBadInput || r.out != "" || !strings.Contains(r.err, tt.want) {
				t.Errorf("exit status %d, %q, %q; want %d and %q", r.status, r.out, r.err, exitBadInput, tt.want)
			}
		})
	}
}
