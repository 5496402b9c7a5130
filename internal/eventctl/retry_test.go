package eventctl

import (
	"context"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/pstest"
)

func TestRetryMovesAFailedEventBack(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	seed(c)
	c.run("retry", "101").is(exitOK, "moved 1 event back into the queue\n", "")
	got := one[string](c, `SELECT concat_ws(' ', value, retries, attempts, locked_at IS NULL, delay_until <= now(),
		enqueued_at < now() - interval '4 d', notified_at IS NOT NULL) FROM events_v2 WHERE id = 101`)
	if want := `{"n":101} 0 3 t t t t`; got != want {
		t.Errorf("the event came back as %s, want %s", got, want)
	}
	if n := one[int](c, `SELECT count(*) FROM event_log WHERE id = 101`); n != 0 {
		t.Error("the event is in event_log still")
	}
	if n := len(server.Messages()); n != 1 {
		t.Errorf("%d notifications for one event", n)
	}
	c.run("retry", "101").is(exitNotFound, "", "event 101 is not failed, or already back in the queue")
	c.run("retry", "1").is(exitNotFound, "", "event 1 is not failed, or already back in the queue")
	c.run("retry", "102").is(exitNotFound, "", "event 102 has completed")
	c.run("retry", "9223372036854775807").is(exitNotFound, "", "neither in the queue nor in event_log")
	c.run("retry", "103", "103", "102").is(exitNotFound, "moved 1 event", "not moved: event 102 has completed")
	if n := one[int](c, `SELECT count(*) FROM event_log`); n != 1 {
		t.Errorf("%d entries are left in event_log, want 1", n)
	}
}

func TestRetryPrintsJSON(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	var doc changedDoc
	c.run("retry", "--json", "--no-notify", "101", "102").is(exitNotFound, "", `{"error":"`).into(&doc)
	if doc.Changed != 1 || len(doc.Refused) != 1 || doc.Refused[0].ID != 102 {
		t.Errorf("%+v", doc)
	}
	if pending := one[bool](c, `SELECT notified_at IS NULL FROM events_v2 WHERE id = 101`); !pending {
		t.Error("the notification is not pending")
	}
}

func TestRetryDuringAnOutageLeavesItPending(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing(pstest.WithErrorInjection("Publish", 13, "out of order"))
	seed(c)
	c.run("retry", "101").is(exitOK, "moved 1 event", "warning: could not publish notifications")
	if pending := one[bool](c, `SELECT notified_at IS NULL FROM events_v2 WHERE id = 101`); !pending {
		t.Error("the notification is not pending")
	}
}

func TestRetryMovesAllOfAHandler(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
		SELECT id, CASE WHEN id % 5 = 0 THEN $2::uuid ELSE $1::uuid END, 'WORKER', 'greet', '_', id::text,
			CASE WHEN id % 5 = 1 THEN 'COMPLETED' ELSE 'FAILED' END::event_log_status, 2, 3, 'x', now()
		FROM generate_series(1, 4000) AS id`, canvasA, canvasB)
	all := scopeArgs("retry", canvasA, "WORKER", "greet", "--all")
	c.run(all...).is(exitOK, "moved 2400 events back into the queue\n", "to move")
	c.run(all...).is(exitOK, "moved 0 events back into the queue\n", "to move")
	if n := c.events(); n != 2400 {
		t.Errorf("%d events are back, want 2400", n)
	}
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE canvas_id <> $1`, canvasA); n != 0 {
		t.Errorf("%d events of another canvas were retried", n)
	}
	if n := len(server.Messages()); n != 2400 {
		t.Errorf("%d notifications for 2400 events", n)
	}
}

func TestInterruptedRetryMovesWholeBatches(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.publishing(pstest.ServerReactorOption{FuncName: "Publish", Reactor: &interrupter{left: 1, cancel: cancel}})
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
		SELECT id, $1, 'WORKER', 'greet', '_', '1', 'FAILED', 2, 3, 'x', now() FROM generate_series(1, 1500) AS id`, canvasA)
	r := c.runWith(ctx, nil, scopeArgs("retry", canvasA, "WORKER", "greet", "--all")...).is(exitFailed, "moved 1000 events", "it was stopped; to go on: eventctl retry --resume ")
	if n := c.events(); n != 1000 || strings.Contains(r.err, "warning") {
		t.Errorf("%d events are back, want 1000; %s", n, r.err)
	}
}

func TestRetryTakesAFilter(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, created_at)
		SELECT id, $1, 'WORKER', 'greet', '_', id::text, CASE WHEN id % 5 = 1 THEN 'CANCELLED' ELSE 'FAILED' END::event_log_status, 2, 3,
			CASE WHEN id % 5 = 2 THEN 'connection refused' ELSE 'no such order' END, now() - interval '3 h', now() - interval '2 h' * (id % 2)
		FROM generate_series(1, 20) AS id`, canvasA)
	c.run("retry", "--error", "refused", "--dry-run").is(exitOK, "would move 4 events back into the queue\n", "")
	c.run("retry", "--error", "refused", "--newer-than", "1h", "--value", `"new"`, "--yes").is(exitOK, "moved 2 events back into the queue\n", "to move")
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE value = '"new"'`); n != 2 || c.events() != 2 {
		t.Errorf("%d of %d events have the new value, want 2", n, c.events())
	}
	c.run("retry", "--name", "greet", "--status", "cancelled", "--yes").is(exitOK, "moved 4 events back into the queue\n", "to move")
	c.run("log", "delete", "--error", "no such", "--dry-run").is(exitOK, "would delete 12 events from event_log\n", "")
	c.run("log", "delete", "--error", "no such", "--yes", "--json").is(exitOK, `"counted":12,"changed":12,`, "operation")
	if n := one[int](c, `SELECT count(*) FROM event_log`); n != 2 || c.events() != 6 {
		t.Errorf("%d events are left in event_log and %d are back, want 2 and 6", n, c.events())
	}
}
