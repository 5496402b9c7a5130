package eventctl

import (
	"strings"
	"testing"

	"eventsv2/internal/view"
)

func TestCanvasIsNamedRenamedAndUnnamed(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("canvas", "list").is(exitOK, "no names of canvases\n", "")
	c.run("canvas", "list", "--json").is(exitOK, `{"items":[]}`, "")
	c.run("canvas", "name", canvasA, "Acme Ltd").is(exitOK, "named canvas "+canvasA+" Acme Ltd\n", "")
	c.run("canvas", "name", canvasA, "Acme Ltd").is(exitOK, "named canvas", "") // which changes nothing
	c.run("canvas", "name", canvasB, "Acme Ltd").is(exitBadInput, "", "another canvas has this name")
	c.run("canvas", "name", canvasB, "acme ltd\u202e").is(exitOK, "", "")
	c.run("canvas", "list").is(exitOK, "CANVAS                                NAME\n"+canvasA+"  Acme Ltd\n"+canvasB+"  \"acme ltd\\u202e\"\n", "")
	var page view.CanvasNames
	c.run("canvas", "list", "--json", "--limit", "1").is(exitOK, "", "").into(&page)
	if len(page.Items) != 1 || page.Items[0].Name != "Acme Ltd" || page.Next != "Acme Ltd" {
		t.Errorf("the first page is %+v", page)
	}
	c.run("canvas", "list", "--after", page.Next).is(exitOK, canvasB, "")
	c.run("canvas", "name", "Acme Ltd", "Acme").is(exitOK, "named canvas "+canvasA+" Acme\n", "")
	c.run("canvas", "unname", "Acme").is(exitOK, "canvas "+canvasA+" has no name any more\n", "")
	c.run("canvas", "unname", canvasA).is(exitNotFound, "", "has no name")
	c.run("canvas", "unname", "Acme").is(exitBadInput, "", "no canvas has this name")
	c.run("canvas", "list", "--after", "a").is(exitOK, canvasB, "")
	entries := c.run("audit", "list").is(exitOK, "", "").out
	if strings.Count(entries, " name_canvas ") != 3 || strings.Count(entries, " unname_canvas ") != 1 {
		t.Errorf("the audit log has\n%s", entries)
	}
	for name, problem := range map[string]string{"": "is empty", "x\u00a0": "spaces around it", "a\tb": "control character", strings.Repeat("x", 256): "256 bytes long",
		strings.ToUpper(canvasB): "looks like a uuid"} {
		c.run("canvas", "name", canvasA, name).is(exitBadInput, "", problem)
	}
	c.run("canvas", "name", "00000000-0000-0000-0000-000000000000", "zero").is(exitBadInput, "", "names no canvas")
}

// A name selects what the uuid of the canvas selects, whatever the command.
func TestNameOfCanvasSelectsIt(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.exec(`INSERT INTO canvas_names (canvas_id, name) VALUES ($1, 'Acme Ltd'), ($2, 'Other')`, canvasA, canvasB)
	c.run("emit", "--no-notify", "--canvas", "Acme Ltd", "--module", "WORKER", "--name", "greet", "--value", "1").is(exitOK, "", "")
	c.run("show", "1").is(exitOK, "canvas name  Acme Ltd", "")
	for _, command := range []string{
		"list", "stats", "stuck", "rule list", "log list", "limit rate list", "limit concurrency list", "cron list",
		"cancel --dry-run", "pause --module WORKER --name greet", "limit rate set --no-notify --per-day 5", "cron set --name nightly --schedule 30,2,*,*,*",
		"token create --name t --verbs read --canvas " + canvasB,
	} {
		words := strings.Fields(command)
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, ",", " ")
		}
		c.run(append(words, "--canvas", "Acme Ltd")...).is(exitOK, "", "")
		c.run(append(words, "--canvas", "Acme ltd")...).is(exitBadInput, "", `canvas_id "Acme ltd" is not a uuid, and no canvas has this name`)
	}
	var canvases string
	if err := c.pool.QueryRow(c.ctx, `SELECT string_agg(canvas, ' ') FROM (SELECT canvas_id::text FROM events_v2 UNION ALL SELECT canvas_id::text FROM scheduling_rules
		UNION ALL SELECT canvas_id::text FROM rate_limits UNION ALL SELECT canvas_id::text FROM cron_definitions
		UNION ALL SELECT array_to_string(canvases, ' ') FROM access_tokens) AS of (canvas)`).Scan(&canvases); err != nil {
		t.Fatal(err)
	}
	if want := strings.Join([]string{canvasA, canvasA, canvasA, canvasA, canvasB, canvasA}, " "); canvases != want {
		t.Errorf("the canvases are %s, not %s", canvases, want)
	}
	c.run("list", "--canvas", "Other").is(exitOK, "no events\n", "")
	c.run("list", "--canvas", "").is(exitBadInput, "", "is not a uuid")
}

// Applications write names by plain SQL, which the table checks.
func TestTableRefusesNamesThatCannotBeTyped(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for _, name := range []string{"", " x", "x ", "a\tb", "a\u009bb", strings.Repeat("ä", 128), canvasB, strings.ToUpper(canvasB)} {
		if _, err := c.pool.Exec(c.ctx, `INSERT INTO canvas_names (canvas_id, name) VALUES ($1, $2)`, canvasA, name); err == nil || !strings.Contains(err.Error(), "23514") {
			t.Errorf("%q is taken: %v", name, err)
		}
	}
	c.exec(`INSERT INTO canvas_names (canvas_id, name) VALUES ($1, $2)`, canvasA, strings.Repeat("ä", 127))
}
