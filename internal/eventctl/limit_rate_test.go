package eventctl

import (
	"strings"
	"testing"
)

func TestRateLimitsAreSetListedAndRemoved(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	c.run("limit", "rate", "list").is(exitOK, "no rate limits\n", "")
	c.run("limit", "rate", "list", "--json").is(exitOK, `{"items":[]}`, "")
	set := func(more ...string) result {
		return c.run(append([]string{"limit", "rate", "set", "--canvas", canvasA}, more...)...)
	}
	set("--per-minute", "60").is(exitOK, "limited canvas "+canvasA+", 60 per minute, exact\n", "")
	set("--module", "WORKER", "--name", "greet", "--per-day", "5", "--mode", "approximate").
		is(exitOK, "limited WORKER/greet on canvas "+canvasA+", 5 per day, approximate\n", "")
	c.run("limit", "rate", "set", "--canvas", canvasB, "--per-minute", "1", "--per-day", "2", "--json").
		is(exitOK, `"per_minute":1,"per_day":2,"mode":"exact","changed":true,"notified":0`, "")
	c.run("emit", "--no-notify", "--file", c.file(lines(12))).is(exitOK, "12", "")
	c.exec(`UPDATE events_v2 SET attempts = 1, limited_attempt = 2, notified_at = now() + interval '1 day', delay_until = now() + interval '1 day'`)
	// As the day's last claims would leave it.
	c.exec(`UPDATE rate_counters SET day_at = date_bin('1 day', clock_timestamp(), 'epoch'), day_count = 5, waiting = 3 WHERE name = 'greet'`)
	c.run("limit", "rate", "list").is(exitOK, "", "").golden("limit_rate")
	if r := c.run("limit", "rate", "list", "--canvas", canvasB); strings.Contains(r.out, canvasA) || !strings.Contains(r.out, "0/2") {
		t.Errorf("the limits of canvas B:\n%s", r.out)
	}
	set("--module", "WORKER", "--name", "greet", "--per-day", "6").is(exitOK, "6 per day, exact; notified 12 events\n", "")
	set("--module", "WORKER", "--name", "greet", "--per-day", "6").is(exitOK, "6 per day, exact\n", "")
	if n := len(server.Messages()); n != 12 {
		t.Errorf("%d notifications of 12", n)
	}
	c.exec(`UPDATE events_v2 SET attempts = 1, limited_attempt = 2, notified_at = now() + interval '1 day', delay_until = now() + interval '1 day'`)
	remove := func(more ...string) result {
		return c.run(append([]string{"limit", "rate", "remove", "--canvas", canvasA, "--module", "WORKER", "--name", "greet"}, more...)...)
	}
	remove("--no-notify").is(exitOK, "removed the limit of WORKER/greet on canvas "+canvasA+"; left to the relay to notify: 12 events\n", "")
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL AND delay_until <= clock_timestamp()`); n != 12 {
		t.Errorf("%d notifications of 12 are pending", n)
	}
	remove().is(exitNotFound, "", "WORKER/greet on canvas "+canvasA+" has no rate limit of its own")
	remove("--json").is(exitNotFound, `"changed":false`, `{"error":"`)
	c.exec(`UPDATE events_v2 SET attempts = 1, limited_attempt = 2, notified_at = now() + interval '1 day', delay_until = now() + interval '1 day'`)
	release := func(more ...string) result {
		return c.run(append([]string{"limit", "rate", "release", "--canvas", canvasA}, more...)...)
	}
	release("--module", "WORKER", "--name", "other").is(exitOK, "WORKER/other on canvas "+canvasA+": no event waits because of a rate limit\n", "")
	release().is(exitOK, "released what waited of canvas "+canvasA+"; notified 12 events\n", "")
	release("--json").is(exitOK, `"notified":0`, "")
	if n := one[int](c, `SELECT count(*) FROM rate_limits`); n != 2 {
		t.Errorf("%d limits of 2 are left", n)
	}
}

// TestChangedRateLimitForgetsNothing: a limit that is lowered, or removed, and put back has run what it has run.
func TestChangedRateLimitForgetsNothing(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	set := func(perDay string) {
		t.Helper()
		c.run("limit", "rate", "set", "--canvas", canvasA, "--per-day", perDay).is(exitOK, perDay+" per day, exact", "")
	}
	used := func(want string) {
		t.Helper()
		if r := c.run("limit", "rate", "list"); !strings.Contains(r.out, " "+want+" ") {
			t.Errorf("want %s:\n%s", want, r.out)
		}
	}
	set("100")
	c.exec(`UPDATE rate_counters SET day_at = date_bin('1 day', clock_timestamp() + interval '1 hour', 'epoch'), day_count = 100, day_most = 100`)
	for range 3 {
		set("1")
		used("100/1")
		set("100")
		used("100/100")
	}
	c.run("limit", "rate", "remove", "--canvas", canvasA).is(exitOK, "removed", "")
	set("100")
	used("100/100")
}
