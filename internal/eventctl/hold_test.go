package eventctl

import "testing"

// TestHoldPausesTheWholeQueue: explain, rule list and runnable say that the queue is held, and a block of a handler is not lifted with it.
func TestHoldPausesTheWholeQueue(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	c.run("hold", "--reason", "r").is(exitBadInput, "", "give --all")
	c.run("unhold", "--all").is(exitNotFound, "", "was not held")
	c.run(emitArgs("1")...).is(exitOK, "", "")
	c.run("hold", "--all", "--reason", "a copy of production", "--actor", "ann").is(exitOK, "held the whole queue", "")
	c.run("hold", "--all", "--reason", "again").is(exitOK, "already held the whole queue by an admin (ann)", "")
	c.run("explain", "1").is(exitOK, "eventctl unhold --all", "")
	c.run("explain", "1").is(exitOK, "a copy of production", "")
	c.run("rule", "list").is(exitOK, "a copy of production", "")
	c.run("list", "--json").is(exitOK, `"blocked"`, "")
	c.run("unhold", "--all").is(exitOK, "let go the whole queue", "")
	c.run("explain", "1").is(exitOK, "No worker runs.", "")
}
