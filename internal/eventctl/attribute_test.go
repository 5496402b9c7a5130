package eventctl

import (
	"strings"
	"testing"
)

func TestEmitSetsAttributes(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(emitArgs("1", "--no-notify", "--attribute", "user=ada", "--attribute", "note=a=b, c")...).is(exitOK, "id 1", "")
	c.run(emitArgs("1", "--no-notify")...).is(exitOK, "id 2", "")
	if got := one[string](c, `SELECT attributes::text FROM events_v2 WHERE id = 1`); got != `{"note": "a=b, c", "user": "ada"}` {
		t.Errorf("the attributes are %s", got)
	}
	c.runWith(c.ctx, strings.NewReader(`{"canvas_id":"`+canvasA+`","module":"M","name":"n","modifier":"_","value":1,"attributes":{"user":"eve"}}`),
		"emit", "--no-notify", "--file", "-").is(exitOK, "id 3", "")
	c.run("show", "1").is(exitOK, "attributes  note=a=b, c\n", "")
	c.run("show", "1", "--json").is(exitOK, `"attributes":{"note":"a=b, c","user":"ada"}`, "")
	for args, want := range map[string]string{"--attribute user=ada": "1", "--attribute user=eve": "3", "--attribute user=": "", "--attribute user=ada --attribute note=x": ""} {
		if got := c.listed(strings.Fields(args)...); got != want {
			t.Errorf("list %s: events %s, want %s", args, got, want)
		}
	}
	c.run("log", "list", "--attribute", "user=ada").is(exitOK, "no entries", "")
	for _, bad := range []struct{ args, problem string }{
		{"--attribute user", `--attribute "user" has no =: write key=value`},
		{"--attribute User=ada", `has the key "User": a key has lower-case letters`},
		{"--attribute user=ada --attribute user=eve", "--attribute user is given twice"},
		{"--attribute =ada", "whose key is empty"},
		{"--attribute n=" + strings.Repeat("x", 1025), "has 1025 bytes"},
	} {
		c.run(emitArgs("1", append([]string{"--no-notify"}, strings.Fields(bad.args)...)...)...).is(exitBadInput, "", bad.problem)
		c.run(append([]string{"list"}, strings.Fields(bad.args)...)...).is(exitBadInput, "", bad.problem)
	}
	if n := c.events(); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}

func TestTreeIsDrawn(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for range 5 {
		c.run(emitArgs("1", "--no-notify")...).is(exitOK, "emitted", "")
	}
	c.exec(`UPDATE events_v2 SET parent_id = CASE id WHEN 2 THEN 1 WHEN 3 THEN 2 WHEN 4 THEN 1 WHEN 5 THEN 99 END`)
	c.exec(`UPDATE events_v2 SET name = E'a\nb' WHERE id = 4`)
	want := "1  waiting  WORKER/greet/_\n├─ 2  waiting  WORKER/greet/_\n│  └─ 3  waiting  WORKER/greet/_  ←\n└─ 4  waiting  \"WORKER/a\\nb/_\"\n"
	c.run("tree", "3").is(exitOK, want, "")
	c.run("tree", "5").is(exitOK, "99  gone\n└─ 5  waiting  WORKER/greet/_  ←\n", "")
	c.run("tree", "3", "--limit", "2").is(exitOK, "there are more events: see --limit", "")
	c.run("tree", "5", "--json").is(exitOK, `{"items":[{"id":5,"canvas_id":"`+canvasA, "")
	c.run("tree", "77").is(exitNotFound, "", "event 77 is neither in the queue nor in event_log, and no event there is a child of it")
	c.run("tree", "x").is(exitBadInput, "", "x")
	c.run("tree", "1", "--limit", "0").is(exitBadInput, "", "--limit is 0")
}
