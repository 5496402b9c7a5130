package eventctl

import "testing"

func TestShowHasProgressAndResult(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(emitArgs("1", "--no-notify")...).is(exitOK, "id 1", "")
	c.exec(`UPDATE events_v2 SET locked_at = now(), attempts = 1, progress = (1, 0.25, E'row\t17', now())`)
	c.run("show", "1").is(exitOK, `25 %, row\t17, reported `, "")
	c.run("show", "1", "--json").is(exitOK, `"progress":{"fraction":0.25,"note":"row\t17"`, "")
	c.exec(`UPDATE events_v2 SET progress = (1, 1, '', now())`)
	c.run("show", "1").is(exitOK, "100 %, reported ", "")
	c.exec(`WITH ended AS (DELETE FROM events_v2 RETURNING *)
		INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, result)
		SELECT id, canvas_id, module, name, modifier, value, 'COMPLETED', 0, 1, enqueued_at, '{"rows":7}' FROM ended`)
	c.run("show", "1").is(exitOK, "result, 10 bytes:\n{\"rows\":7}\n", "")
	c.run("show", "1", "--json").is(exitOK, `"result":{"rows":7}`, "")
}

func TestShowHasTheLogsOfRuns(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(emitArgs("1", "--no-notify")...).is(exitOK, "id 1", "")
	c.exec(`WITH ended AS (DELETE FROM events_v2 RETURNING *)
		INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, run_log)
		SELECT id, canvas_id, module, name, modifier, value, 'FAILED', 1, 2, enqueued_at, E'the\x1b[31m\nsecond' FROM ended`)
	c.run("show", "1").is(exitOK, "log of the last run:\nthe\\x1b[31m\nsecond\n", "")
	c.exec(`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error, run_log)
		SELECT id, attempt, canvas_id, now(), '1 s', 'no luck', CASE attempt WHEN 1 THEN 'the first' ELSE run_log END FROM event_log CROSS JOIN generate_series(1, 2) AS attempt`)
	c.run("show", "1").is(exitOK, "log of attempt 1:\nthe first\nlog of attempt 2:\nthe\\x1b[31m\nsecond\nvalue, ", "")
	c.run("show", "1", "--json").is(exitOK, `"run_log":"the first"`, "")
}
