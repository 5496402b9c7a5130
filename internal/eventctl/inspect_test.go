package eventctl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

// seed writes events in every state, and two that have ended; the handlers are
// paused and blocked as their names say.
func seed(c *cli) {
	c.t.Helper()
	c.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, retries, attempts, enqueued_at, delay_until, locked_at, notified_at)
		SELECT canvas::uuid, 'WORKER', name, modifier, value, retries, attempts, now() - interval '50 h 30 min',
			now() + delay::interval, now() - locked::interval, now() - notified::interval
		FROM (VALUES
			(1, $1, 'greet',   '_', '{"a": 1.0,  "b":"`+"\u009b"+`"}', 0, 0, '-50 h -30 min', NULL,     '26 h 30 min'),
			(2, $1, 'greet',   '_', '1',             1, 1, '5 d 30 min',    NULL,     NULL),
			(3, $1, 'greet',   'x', '2',             0, 3, '-49 h -30 min', '10 s',   '26 h 30 min'),
			(4, $1, 'greet',   '_', '3',             2, 3, '-3 d -30 min',  '26 h 31 min 30 s', '26 h 30 min'),
			(5, $1, 'paused',  '_', '4',             0, 0, '-50 h -30 min', NULL,     '-5 h -30 min'),
			(6, $1, 'blocked', '_', 'not JSON',      0, 0, '-50 h -30 min', NULL,     '26 h 30 min'),
			(7, $2, E'a\nb\u001b[31m',   '_', '6',   0, 0, '-50 h -30 min', NULL,     '26 h 30 min')
		) AS v (place, canvas, name, modifier, value, retries, attempts, delay, locked, notified)
		ORDER BY place`, canvasA, canvasB)
	c.exec(`UPDATE events_v2 SET begun = id <> 3, claim_id = 9007199254740993 + id + attempts WHERE locked_at IS NOT NULL`)
	c.exec(`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, worker, error) VALUES
		(4, 1, $1, '2024-02-03 04:05:06Z', '40 ms', NULL, 'of an earlier version'),
		(4, 2, $1, '2024-02-03 04:06:06Z', '12 ms', 7, E'no luck\x1b[2J'),
		(101, 3, $1, '2024-02-03 04:06:06Z', '1 h', 7, E'no luck\x1b[2J')`, canvasA)
	c.exec(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, created_at) VALUES
		('pause', $1, 'WORKER', 'paused', '2024-02-03 04:05:06Z'::timestamptz),
		('pause', $1, 'WORKER', 'blocked', '2024-02-03 04:05:06Z'::timestamptz),
		('block', $1, 'WORKER', 'blocked', '2024-02-03 04:05:07Z'::timestamptz)`, canvasA)
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, created_at) VALUES
		(101, $1, 'WORKER', 'greet', '_', '{"n":101}', 'FAILED', 2, 3, E'no luck\x1b[2J', now() - interval '4 d 30 min', now() - interval '3 d 30 min'),
		(102, $1, 'WORKER', 'greet', '_', '{"n":102}', 'COMPLETED', 0, 1, NULL, now() - interval '4 d 30 min', now() - interval '3 d 30 min'),
		(103, $2, 'WORKER', 'gone', '_', '{"n":103}', 'FAILED', 2, 3, repeat('long ', 50), now() - interval '4 d 30 min', now() - interval '3 d 30 min')`, canvasA, canvasB)
}

func TestListFiltersEvents(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("list").is(exitOK, "no events\n", "")
	c.run("list", "--json").is(exitOK, `{"items":[]}`, "")
	seed(c)
	c.run("list").is(exitOK, "", "").golden("list")
	for state, want := range map[string]string{"waiting": "1 7", "delayed": "2", "running": "3", "expired": "4", "paused": "5", "blocked": "6"} {
		if got := c.listed("--state", state); got != want {
			t.Errorf("%s: events %s, want %s", state, got, want)
		}
	}
	for args, want := range map[string]string{
		"--canvas " + canvasB: "7", "--module CRON": "", "--module WORKER --name greet": "1 2 3 4",
		"--after 5": "6 7", "--limit 3": "1 2 3", "--limit 2 --after 3": "4 5", "--after 9223372036854775807": "",
	} {
		if got := c.listed(strings.Fields(args)...); got != want {
			t.Errorf("%s: events %s, want %s", args, got, want)
		}
	}
	c.run("list", "--limit", "2").is(exitOK, "there may be more: add --after 2\n", "")
}

// listed runs list and returns the ids that it lists.
func (c *cli) listed(args ...string) string {
	c.t.Helper()
	var doc view.Page[view.Event]
	c.run(append([]string{"list", "--json"}, args...)...).is(exitOK, "", "").into(&doc)
	var ids []string
	for _, e := range doc.Items {
		ids = append(ids, e.ID.String())
	}
	return strings.Join(ids, " ")
}

func TestListPrintsJSON(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	var doc view.Page[view.Event]
	c.run("list", "--json", "--limit", "1", "--after", "2").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 1 || doc.Next != 3 {
		t.Fatalf("%+v", doc)
	}
	e := doc.Items[0]
	if e.State != string(inspect.Running) || e.Modifier != "x" || e.Attempts != 3 || e.LockedAt == nil || e.NotifiedAt == nil || e.Value != nil || e.ValueBytes != 1 {
		t.Errorf("%+v", e)
	}
}

func TestListUsesTheLockTimeout(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	c.env["LOCK_TIMEOUT"] = "1s" // which is not asked: the database knows it
	c.run("settings", "set", "lock-timeout", "100h").is(exitOK, "lock timeout: 100h0m0s\n", "")
	if got := c.listed("--state", "running"); got != "3 4" {
		t.Errorf("running events are %s, want 3 4", got)
	}
}

func TestShowPrintsStateAndCause(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	for id, why := range map[int]string{
		1: "No worker runs.",
		2: "It is due ",
		3: "A worker runs it now: it holds the lock, taken or renewed",
		4: "expired",
		5: "Its handler is paused by the user since 2024-02-03T04:05:06Z",
		6: "Its handler is blocked by an admin since 2024-02-03T04:05:07Z",
	} {
		c.run("show", fmt.Sprint(id)).is(exitOK, why, "")
	}
	r := c.run("show", "1").is(exitOK, "value, 21 bytes:\n"+`{"a": 1.0,  "b":"\u009b"}`+"\n", "")
	if strings.Contains(r.out, "\u009b") {
		t.Errorf("a control character reaches the terminal: %q", r.out)
	}
	r = c.run("show", "7").is(exitOK, `"WORKER/a\nb\x1b[31m/_"`, "")
	if strings.Contains(r.out, "\x1b") {
		t.Errorf("a control character reaches the terminal: %q", r.out)
	}
	c.run("show", "101").is(exitOK, `"no luck\x1b[2J"`, "")
	c.run("show", "102").is(exitOK, "completed", "")
	for _, id := range []string{"9", "9223372036854775807"} {
		c.run("show", id).is(exitNotFound, "", "event "+id+" is neither in the queue nor in event_log")
		c.run("show", id, "--json").is(exitNotFound, "", `{"error":"event `+id)
	}
}

// TestShowPrintsTheClaim: what an operator needs to find who holds an event, and to know what
// its end counts as.
func TestShowPrintsTheClaim(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	for id, golden := range map[string]string{"3": "show_running", "4": "show_expired"} {
		c.run("show", id).is(exitOK, "", "").withoutTimes().golden(golden)
	}
	var shown struct{ Event view.Event }
	c.run("show", "4", "--json").is(exitOK, `"claim_id":"9007199254740997"`, "").into(&shown)
	if !shown.Event.Begun {
		t.Errorf("%+v", shown.Event)
	}
	if r := c.run("show", "1").is(exitOK, "", ""); strings.Contains(r.out, "claim 0") || strings.Contains(r.out, "last claim") {
		t.Errorf("an event that was never claimed is shown as\n%s", r.out)
	}
}

func TestFinalizeWaitsForOldLocks(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("settings", "finalize").is(exitOK, "lock timeout: 1m0s (the default", "")
	seed(c)
	c.run("settings", "set", "lock-timeout", "100h").is(exitOK, "lock timeout: 100h0m0s\n", "")
	c.run("settings", "set", "lock-timeout", "1m").is(exitOK, "lock timeout: 1m0s, before that 100h0m0s", "")
	c.run("settings", "finalize").is(exitFailed, "", "1 events, the first of them 4, have locks that are valid only by the time before the change")
	c.run("settings", "show").is(exitOK, "lock timeout: 1m0s, before that 100h0m0s", "")
	c.run("settings", "finalize", "--force").is(exitOK, "lock timeout: 1m0s\n", "")
}

// TestFinalizeWaitsForALockOlderThanTheNewTime: it is valid by the old one for minutes.
func TestFinalizeWaitsForALockOlderThanTheNewTime(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("settings", "set", "lock-timeout", "1h").is(exitOK, "lock timeout: 1h0m0s\n", "")
	c.run("settings", "set", "lock-timeout", "30s").is(exitOK, "lock timeout: 30s, before that 1h0m0s", "")
	c.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, attempts, locked_at)
		VALUES (gen_random_uuid(), 'M', 'n', '', '1', 1, clock_timestamp() - interval '45 s')`)
	c.run("settings", "finalize").is(exitFailed, "", "1 events, the first of them 1, have locks that are valid only by the time before the change")
	c.run("settings", "show").is(exitOK, "lock timeout: 30s, before that 1h0m0s", "")
	c.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '61 minutes'`)
	c.run("settings", "finalize").is(exitOK, "lock timeout: 30s\n", "")
	c.run("settings", "show").is(exitOK, "lock timeout: 30s\n", "")
}

func TestShowPrintsJSON(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	var queued struct {
		Event   view.Event
		Reasons []view.Reason
	}
	r := c.run("show", "1", "--json").is(exitOK, "", "")
	r.into(&queued)
	if string(queued.Event.Value) != `{"a":1.0,"b":"\u009b"}` || len(queued.Reasons) != 1 || strings.Contains(r.out, "\u009b") {
		t.Errorf("%s", r.out)
	}
	c.run("show", "6", "--json").is(exitOK, "", "").into(&queued)
	var text string
	if err := json.Unmarshal(queued.Event.Value, &text); err != nil || text != "not JSON" {
		t.Errorf("a value that is no JSON is shown as %s", queued.Event.Value)
	}
	var ended struct{ Event view.Event }
	c.run("show", "101", "--json").is(exitOK, "", "").into(&ended)
	if ended.Event.LastError != "no luck\x1b[2J" || string(ended.Event.Value) != `{"n":101}` || ended.Event.State != "failed" {
		t.Errorf("%+v", ended)
	}
}

func TestShowPrintsInfiniteDelay(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until) VALUES ($1, 'm', 'n', '_', '1', '294276-01-01'), ($1, 'm', 'n', '_', '1', '4713-01-01 BC')`, canvasA)
	c.run("show", "1").is(exitOK, "9999-12-31", "")
	c.run("show", "2").is(exitOK, "waiting", "")
	c.run("list").is(exitOK, "delayed", "")
	c.run("stats").is(exitOK, "2 ", "")
}

func TestStatsCountEventsByHandler(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("stats").is(exitOK, "no events, no rules, nothing failed\n", "")
	c.run("stats", "--json").is(exitOK, `{"items":[]}`, "")
	seed(c)
	c.run("stats").is(exitOK, "", "").golden("stats")
	var doc view.Page[view.Stats]
	c.run("stats", "--json", "--canvas", canvasA, "--name", "greet").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 1 {
		t.Fatalf("%+v", doc)
	}
	h := doc.Items[0]
	if h.Depth != 4 || h.States["running"] != 1 || h.States["delayed"] != 1 || h.States["expired"] != 1 || h.Failed != 1 || *h.OldestDue < 72*3600 || *h.OldestDue > 74*3600 || len(h.Rules) != 0 {
		t.Errorf("%+v", h)
	}
	c.run("stats", "--json", "--name", "blocked").is(exitOK, `"rules":["pause","block"]`, "")
}

func TestLogListsEndedEvents(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("log", "list").is(exitOK, "no entries in event_log\n", "")
	c.run("log", "list", "--json").is(exitOK, `{"items":[]}`, "")
	seed(c)
	c.run("log", "list").is(exitOK, "", "").golden("log")
	for args, want := range map[string]string{
		"--status failed": "101 103", "--status COMPLETED": "102", "--canvas " + canvasB: "103", "--after 101": "102 103",
		"--newest": "103 102 101", "--newest --limit 1": "103", "--newest --after 102": "101", "--name greet --limit 1": "101",
	} {
		var doc view.HistoryPage
		c.run(append([]string{"log", "list", "--json"}, strings.Fields(args)...)...).is(exitOK, "", "").into(&doc)
		var ids []string
		for _, e := range doc.Items {
			ids = append(ids, e.ID.String())
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: entries %s, want %s", args, got, want)
		}
	}
}
