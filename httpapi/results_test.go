package httpapi_test

import (
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/test/rig"
)

// TestEventHasItsProgressAndItsResult, which is a value: only those read it who may read values.
func TestEventHasItsProgressAndItsResult(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	values, names, id := c.token(rig.Canvas, access.Read, access.ReadValues), c.token(rig.Canvas, access.Read), c.Emit(c.Copies(1)...)[0].String()
	c.Exec(`UPDATE events_v2 SET locked_at = now(), attempts = 1, progress = (1, 0.25, 'row 17', '2026-11-02 10:00Z')`)
	for _, token := range []string{values, names} {
		c.wants(200, `"progress":{"fraction":0.25,"note":"row 17","at":"2026-11-02T10:00:00Z"}`, token, "GET", "/events/"+id, "")
	}
	c.Exec(`WITH ended AS (DELETE FROM events_v2 RETURNING *)
		INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, result)
		SELECT id, canvas_id, module, name, modifier, value, 'COMPLETED', 0, 1, enqueued_at, '{"rows":7}' FROM ended`)
	c.wants(200, `"result":{"rows":7}`, values, "GET", "/events/"+id, "")
	if answer := c.wants(200, `"state":"completed"`, names, "GET", "/events/"+id, ""); strings.Contains(answer, "rows") {
		t.Errorf("who may not read values sees %s", answer)
	}
	c.Exec(`UPDATE event_log SET result = '{"$encrypted":{"key":7,"bytes":"YWJj"}}'`)
	if answer := c.wants(200, `"state":"completed"`, values, "GET", "/events/"+id, ""); strings.Contains(answer, "YWJj") {
		t.Errorf("an encrypted result is shown: %s", answer)
	}
}

// TestLogsOfRunsAreForReadersOfValues.
func TestLogsOfRunsAreForReadersOfValues(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	values, names, id := c.token(rig.Canvas, access.Read, access.ReadValues), c.token(rig.Canvas, access.Read), c.Emit(c.Copies(1)...)[0].String()
	c.Exec(`WITH ended AS (DELETE FROM events_v2 RETURNING *), failed AS (
			INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error, run_log) SELECT id, 1, canvas_id, now(), '1 s', 'no luck', 'the first' FROM ended)
		INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, duration, run_log)
		SELECT id, canvas_id, module, name, modifier, value, 'COMPLETED', 1, 2, enqueued_at, '1 s', 'the second' FROM ended`)
	c.wants(200, `"run_log":"the second"`, values, "GET", "/events/"+id, "")
	c.wants(200, `"run_log":"the first"`, values, "GET", "/events/"+id+"/attempts", "")
	c.wants(200, `"run_log":"the second"`, values, "GET", "/events/"+id+"/attempts", "")
	for _, path := range []string{"/events/" + id, "/events/" + id + "/attempts"} {
		if answer := c.wants(200, `completed`, names, "GET", path, ""); strings.Contains(answer, "run_log") {
			t.Errorf("who may not read values sees %s", answer)
		}
	}
	if answer := c.wants(200, `completed`, values, "GET", "/history?canvas_id="+rig.Canvas.String(), ""); strings.Contains(answer, "run_log") {
		t.Errorf("a list has logs: %s", answer)
	}
}
