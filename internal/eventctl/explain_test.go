package eventctl

import "testing"

// TestExplainNamesCauseAndCommand: what keeps each event, and the command that changes it, are named for whoever asks.
func TestExplainNamesCauseAndCommand(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	c.exec(`UPDATE events_v2 SET delay_until = now() + interval '30 min', attempts = 1, limited_attempt = 2 WHERE id = 7`)
	c.run("limit", "rate", "set", "--canvas", canvasB, "--per-minute", "10", "--no-notify").is(exitOK, "", "")
	c.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, group_state, ordering_key) VALUES
		($1, 'WORKER', 'greet', '_', '8', 2, 'k'), ($1, 'WORKER', 'greet', '_', '9', 1, 'k')`, canvasA)
	c.exec(`INSERT INTO event_groups (event_id, stage, canvas_id, group_key, admitted) SELECT e.id, 1, e.canvas_id, events_v2_group_key(1, '', '', 'k'), e.group_state = 2
		FROM events_v2 e WHERE e.ordering_key = 'k'`)
	c.run("explain", "7").is(exitOK, "all limits that it has to pass have room", "")
	// The window is still to come, so that the minute does not end while the test runs.
	c.exec(`UPDATE rate_counters SET minute_at = date_bin('1 minute', clock_timestamp(), 'epoch') + interval '1 h', minute_count = 10`)
	for id, want := range map[string][]string{
		"2":   {"due", "eventctl requeue 2"},
		"3":   {"runs it now"},
		"4":   {"No worker runs.", "Start a worker with its handler WORKER/greet/_"},
		"5":   {"paused by the user since 2024-02-03T04:05:06Z", "eventctl unpause --canvas " + canvasA + " --module WORKER --name paused"},
		"6":   {"blocked by an admin since 2024-02-03T04:05:07Z", "paused by the user", "eventctl unblock"},
		"7":   {"no room: 10 per minute", "it is tried again", "eventctl limit rate set --canvas " + canvasB + " --per-minute 20", `WORKER/"a\nb\x1b[31m"/_`},
		"9":   {`ordering key "k"`, "behind event 8", "eventctl explain 8"},
		"101": {"FAILED", "no luck", "eventctl retry 101"},
		"102": {"completed"},
	} {
		for _, text := range want {
			c.run("explain", id).is(exitOK, text, "")
		}
	}
	c.run("explain", "999").is(exitNotFound, "", "neither in the queue nor in the history")
	c.run("explain", "5", "--json").is(exitOK, `"Paused"`, "")
}
