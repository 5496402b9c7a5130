package eventctl

import (
	"strings"
	"testing"
)

func TestEditChangesAWaitingEvent(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	seed(c)
	state := func(id int) string {
		t.Helper()
		return one[string](c, `SELECT concat_ws(' ', value, attributes, delay_until <= now()) FROM events_v2 WHERE id = $1`, id)
	}
	c.run("edit", "2", "--value", `{"n":  2}`, "--attribute", "source=hand").is(exitOK, "edited 1 event\n", "")
	if got := state(2); got != `{"n":  2} {"source": "hand"} f` {
		t.Errorf("the event is %s", got)
	}
	c.run("edit", "2", "--no-attributes", "--delay", "0s").is(exitOK, "edited 1 event\n", "")
	if got := state(2); got != `{"n":  2} t` {
		t.Errorf("the event is %s", got)
	}
	if n := len(server.Messages()); n != 1 {
		t.Errorf("%d notifications, want that of the event that became due", n)
	}
	c.run("edit", "3", "1", "101", "--value", "7").is(exitNotFound, "edited 1 event\n", "not edited: event 3 is running: a worker holds its lock")
	c.env["MAX_VALUE_BYTES"] = "10"
	for args, problem := range map[string]string{
		"edit 1":                            "say what to change",
		"edit --value 1":                    "give the ids",
		"edit 1 --value {":                  "value: ",
		`edit 1 --value "12345678901"`:      "the limit is 10",
		"edit 1 --attribute X=1":            "--attribute",
		"edit 1 --delay soon":               "is not a duration",
		"edit 1 --delay=-1s":                "is negative",
		"edit 1 --delay-until 2030-01-31":   "is not a time",
		"edit 1 --delay 1s --delay-until x": "none of the others can be",
		"retry 101 --value {":               "value: ",
	} {
		c.run(strings.Fields(args)...).is(exitBadInput, "", problem)
	}
	if got := state(1); got != "7 t" {
		t.Errorf("after bad edits the event is %s", got)
	}
}

func TestRetryMaySetAnotherValue(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	seed(c)
	c.run("retry", "101", "102", "--value", `{"n":  7}`, "--attribute", "source=hand").is(exitNotFound, "moved 1 event", "event 102 has completed")
	if got := one[string](c, `SELECT concat_ws(' ', value, attributes, retries, attempts, delay_until <= now()) FROM events_v2 WHERE id = 101`); got != `{"n":  7} {"source": "hand"} 0 3 t` {
		t.Errorf("the event came back as %s", got)
	}
	if got := one[string](c, `SELECT value FROM event_log WHERE id = 102`); got != `{"n":102}` {
		t.Errorf("the completed event has the value %s", got)
	}
	c.run("cancel", "2").is(exitOK, "cancelled 1 event", "")
	c.run("retry", "2", "--delay", "1h").is(exitOK, "moved 1 event", "")
	if got := one[string](c, `SELECT concat_ws(' ', value, delay_until > now() + interval '50 min') FROM events_v2 WHERE id = 2`); got != "1 t" {
		t.Errorf("the cancelled event came back as %s", got)
	}
}
