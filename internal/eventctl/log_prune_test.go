package eventctl

import (
	"context"
	"testing"
)

func TestPruneDeletesByStatusAndAge(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("log", "prune", "--status", "failed", "--older-than", "0s", "--yes").is(exitOK, "deleted 0 failed events from event_log\n", "")
	seed(c)
	left := func(want string) {
		t.Helper()
		if got := one[string](c, `SELECT string_agg(id::text, ' ' ORDER BY id) FROM event_log`); got != want {
			t.Errorf("event_log holds %s, want %s", got, want)
		}
	}
	c.run("log", "prune", "--status", "failed", "--older-than", "72h", "--dry-run").is(exitOK, "would delete 2 failed events from event_log\n", "")
	c.run("log", "prune", "--status", "failed", "--older-than", "96h", "--yes").is(exitOK, "deleted 0 failed events from event_log\n", "")
	left("101 102 103")
	c.run("log", "prune", "--status", "completed", "--older-than", "72h", "--yes").is(exitOK, "deleted 1 completed event from event_log\n", "")
	left("101 103")
	c.run("log", "prune", "--status", "failed", "--older-than", "72h", "--dry-run", "--json").
		is(exitOK, `{"state":"failed","older_than_seconds":259200,"dry_run":true,"events":2}`, "")
	c.run("log", "prune", "--status", "FAILED", "--older-than", "72h", "--yes", "--json").
		is(exitOK, `{"state":"failed","older_than_seconds":259200,"dry_run":false,"events":2}`, "")
	if n := one[int](c, `SELECT count(*) FROM event_log`); n != 0 || c.events() != 7 {
		t.Errorf("%d entries and %d events are left, want 0 and 7", n, c.events())
	}
}

func TestInterruptedPruneReportsItsProgress(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	c.runWith(ctx, nil, "log", "prune", "--status", "failed", "--older-than", "72h", "--yes").is(exitFailed, "", "context canceled")
	if n := one[int](c, `SELECT count(*) FROM event_log`); n != 3 {
		t.Errorf("%d entries are left, want all 3", n)
	}
}
