package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"eventsv2/access"
)

// TestPageShowsWhatARunHasSaid: its progress to all who may read the event, and its result to those who may read values.
func TestPageShowsWhatARunHasSaid(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	running := "/events/" + q.ids[2].String()
	q.exec(`UPDATE events_v2 SET locked_at = now(), attempts = 1, progress = (1, 0.29, $2, now()) WHERE id = $1`, q.ids[2], "row 17 "+hostile)
	q.exec(`UPDATE event_log SET status = 'COMPLETED', last_error = NULL, result = '{"file": "<script>7.csv"}' WHERE id = 900001`)
	values, names := q.steering(access.Verbs()...), q.steering(access.Read)
	for _, b := range []*browser{values, names} {
		b.wants(b.get(running), 200, `<progress value="29" max="100">`, "29 %, <bdi>row 17 &lt;script&gt;")
	}
	values.wants(values.get("/events/900001"), 200, "<h2>Result</h2>", "&lt;script&gt;7.csv")
	if w := names.get("/events/900001"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "7.csv") {
		t.Errorf("who may not read values sees, with status %d, %s", w.Code, w.Body)
	}
	q.exec(`UPDATE event_log SET result = to_json(repeat('x', 60000))::text WHERE id = 900001`)
	values.wants(values.get("/events/900001"), 200, "This is its beginning;")
	q.exec(`UPDATE event_log SET result = '{"$encrypted":{"key":7,"bytes":"YWJj"}}' WHERE id = 900001`)
	if body := values.get("/events/900001").Body.String(); strings.Contains(body, "YWJj") {
		t.Error("the page has the bytes of an encrypted result")
	}
}

// TestPageShowsTheLogsOfRuns under their attempts, and that of the last run where its attempt is not known, to those who may read values.
func TestPageShowsTheLogsOfRuns(t *testing.T) {
	t.Parallel()
	q := newQueue(t).seed()
	q.exec(`UPDATE event_log SET run_log = 'last ' || $1 WHERE id = 900001`, hostile)
	q.exec(`DELETE FROM event_attempts`)
	values, names := q.steering(access.Verbs()...), q.steering(access.Read)
	values.wants(values.get("/events/900001"), 200, "<summary>Log of the run</summary>", "last &lt;script&gt;")
	q.exec(`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error, run_log)
		SELECT id, attempt, canvas_id, now(), '1 s', 'no luck', CASE attempt WHEN 1 THEN E'first\nof two' ELSE run_log END
		FROM event_log CROSS JOIN generate_series(1, 2) AS attempt WHERE id = 900001`)
	page := values.get("/events/900001")
	values.wants(page, 200, "first\nof two")
	if n := strings.Count(page.Body.String(), "last &lt;script&gt;"); n != 1 {
		t.Errorf("the log of the last run is there %d times", n)
	}
	if w := names.get("/events/900001"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "Log of the run") {
		t.Errorf("who may not read values sees, with status %d, %s", w.Code, w.Body)
	}
}
