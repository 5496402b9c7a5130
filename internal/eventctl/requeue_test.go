package eventctl

import (
	"context"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/pstest"
)

// requeued reads the columns that a requeue sets.
func (c *cli) requeued(id int) string {
	c.t.Helper()
	return one[string](c, `SELECT concat_ws(' ', locked_at IS NULL, delay_until <= now(), retries, attempts, notified_at > now() - interval '1 h')
		FROM events_v2 WHERE id = $1`, id)
}

func TestRequeueReleasesAnEvent(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	seed(c)
	for range 2 { // once or twice is the same
		c.run("requeue", "2").is(exitOK, "requeued 1 event\n", "")
		if got, want := c.requeued(2), "t t 1 1 t"; got != want {
			t.Errorf("the delayed event is %s, want %s", got, want)
		}
	}
	c.run("requeue", "4", "1").is(exitOK, "requeued 2 events\nevent 4: the lock that had expired is cleared, and its run counts as failed if it died alone\n", "")
	if got, want := c.requeued(4), "t t 2 3 t"; got != want {
		t.Errorf("the event whose lock had expired is %s, want %s", got, want)
	}
	if n := len(server.Messages()); n != 4 {
		t.Errorf("%d notifications, want 4", n)
	}
	c.run("requeue", "5").is(exitOK, "event 5 does not run before its handler, which is paused by the user, is unpaused: see eventctl show 5\n", "")
	c.run("requeue", "6").is(exitOK, "event 6 does not run before its handler, which is blocked by an admin, is unblocked", "")
	if n := len(server.Messages()); n != 4 {
		t.Errorf("%d notifications after events that are held back, want 4", n)
	}
}

func TestRequeueRefusesUnsuitableEvents(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	seed(c)
	c.run("requeue", "3").is(exitNotFound, "requeued 0 events\n", "event 3 is running: a worker holds its lock, which is valid for ")
	c.run("requeue", "101").is(exitNotFound, "requeued 0 events\n", "event 101 has failed: a retry moves it back")
	c.run("requeue", "102").is(exitNotFound, "requeued 0 events\n", "event 102 has completed: emit a new event")
	c.run("requeue", "9223372036854775807").is(exitNotFound, "", "is neither in the queue nor in event_log")
	if n := len(server.Messages()); n != 0 {
		t.Errorf("%d notifications of refused events", n)
	}
	c.run("requeue", "1", "3", "102").is(exitNotFound, "requeued 1 event\n", "not requeued: event 3 is running")
	// What the database's lock timeout says is running is running.
	c.run("settings", "set", "lock-timeout", "100h").is(exitOK, "lock timeout: 100h0m0s\n", "")
	c.run("settings", "show").is(exitOK, "lock timeout: 100h0m0s\n", "")
	c.run("settings", "finalize").is(exitOK, "lock timeout: 100h0m0s\n", "")
	c.run("settings", "set", "lock-timeout", "0s").is(exitBadInput, "", "is no lock timeout")
	c.run("requeue", "4").is(exitNotFound, "", "which is valid for 3d1h more")
	if one[bool](c, `SELECT locked_at IS NULL FROM events_v2 WHERE id = 4`) {
		t.Error("a refused requeue has cleared the lock")
	}
}

func TestRequeuePrintsJSON(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	var doc changedDoc
	c.run("requeue", "--json", "--no-notify", "2", "3", "4", "5").is(exitNotFound, "", `{"error":"not requeued: event 3`).into(&doc)
	if doc.Changed != 3 || len(doc.TakenOver) != 1 || doc.TakenOver[0] != 4 || len(doc.HeldBack) != 1 || doc.HeldBack[0] != (heldBack{5, "pause"}) ||
		len(doc.Refused) != 1 || doc.Refused[0].ID != 3 {
		t.Errorf("%+v", doc)
	}
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE id IN (2, 4, 5) AND notified_at IS NULL`); n != 3 {
		t.Errorf("%d notifications are pending, want 3", n)
	}
	c.run("requeue", "--json", "--no-notify", "1").is(exitOK, `{"changed":1,"refused":[]}`, "")
}

func TestRequeueDuringAnOutageLeavesItPending(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing(pstest.WithErrorInjection("Publish", 13, "out of order"))
	seed(c)
	c.run("requeue", "2").is(exitOK, "requeued 1 event\n", "warning: could not publish notifications")
	if pending := one[bool](c, `SELECT notified_at IS NULL FROM events_v2 WHERE id = 2`); !pending {
		t.Error("the notification is not pending")
	}
}

func TestInterruptedRequeueRequeuesWholeBatches(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.publishing(pstest.ServerReactorOption{FuncName: "Publish", Reactor: &interrupter{left: 1, cancel: cancel}})
	c.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) SELECT $1, 'WORKER', 'greet', '_', '1' FROM generate_series(1, 1500)`, canvasA)
	ids := strings.Fields(one[string](c, `SELECT string_agg(id::text, ' ' ORDER BY id) FROM events_v2`))
	c.runWith(ctx, nil, append([]string{"requeue"}, ids...)...).is(exitFailed, "requeued 250 events\n", "250 events requeued, and then: interrupted")
}
