package eventctl

import (
	"fmt"
	"strings"
	"testing"
)

func TestCancelEndsWaitingEvents(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	seed(c)
	c.run("cancel", "1", "2", "4", "5", "6").is(exitOK, "cancelled 5 events\n", "")
	if got := one[string](c, `SELECT string_agg(concat_ws(' ', id, status, value, retries, attempts), ', ' ORDER BY id) FROM event_log WHERE id IN (2, 4)`); got != "2 CANCELLED 1 1 1, 4 CANCELLED 3 2 3" {
		t.Errorf("event_log has %s", got)
	}
	c.run("cancel", "2").is(exitOK, "cancelled 0 events\n", "") // I14
	c.run("cancel", "2", "101", "102", "9223372036854775807").is(exitNotFound, "cancelled 0 events\n", "not cancelled: event 101 has failed")
	c.run("cancel", "2", "3", "--actor", "ada", "--reason", "wrong").is(exitOK, "cancelled 0 events\nevent 3 runs: its worker was asked to end the run; see eventctl explain 3\n", "")
	c.run("cancel", "3", "--json").is(exitOK, `"ending":[3]`, "")
	c.run("explain", "3").is(exitOK, "It was cancelled by ada while it ran, and is not run again: wrong.", "")
	c.run("show", "3", "--json").is(exitOK, `"cancelling":true,"reason":"wrong","actor":"ada"`, "")
	c.run("cancel", "101").is(exitNotFound, "", "event 101 has failed: a retry moves it back")
	c.run("show", "2").is(exitOK, "cancelled", "")
	c.run("log", "list", "--status", "cancelled", "--limit", "1").is(exitOK, "cancelled", "")
	c.run("requeue", "2").is(exitNotFound, "", "event 2 was cancelled: a retry moves it back")
	c.run("delete", "2").is(exitNotFound, "", "event 2 was cancelled: a retry moves it back")
	if n := len(server.Messages()); n != 0 {
		t.Errorf("%d notifications of cancelled events", n)
	}
	c.run("retry", "2").is(exitOK, "moved 1 event back into the queue\n", "")
	if got := one[string](c, `SELECT concat_ws(' ', value, retries, attempts, delay_until <= now()) FROM events_v2 WHERE id = 2`); got != "1 0 1 t" {
		t.Errorf("the event came back as %s", got)
	}
}

func TestDeleteRefusesRunningEvents(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	var doc changedDoc
	c.run("delete", "--json", "--no-notify", "1", "2", "3", "102").is(exitNotFound, "", `{"error":"not deleted: event 3`).into(&doc)
	if doc.Changed != 2 || len(doc.Refused) != 2 {
		t.Errorf("%+v", doc)
	}
	if n := one[int](c, `SELECT (SELECT count(*) FROM events_v2 WHERE id < 3) + (SELECT count(*) FROM event_log WHERE id < 3)`); n != 0 {
		t.Errorf("%d of the deleted events are left", n)
	}
	c.run("delete", "--no-notify").is(exitBadInput, "", "give the ids of events that wait")
	c.run("delete", "--no-notify", "1").is(exitNotFound, "", "is neither in the queue nor in event_log")
}

func TestCancelTakesAFilter(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	seed(c)
	greet := []string{"cancel", "--canvas", canvasA, "--name", "greet"}
	for args, problem := range map[string]string{
		"cancel":                                    "give the ids of events that wait, or a filter",
		"cancel --yes":                              "give the ids of events that wait, or a filter",
		"cancel 1 --name greet":                     "ids and a filter exclude each other",
		"cancel 1 --yes":                            "go with a filter, not with ids",
		"cancel --name greet":                       "give --yes if that is meant, or --dry-run",
		"cancel --name greet --yes --dry-run":       "give --yes if that is meant, or --dry-run",
		"cancel --name= --yes":                      "name: is empty",
		"cancel --modifier= --yes":                  "--modifier is empty",
		"cancel --older-than 0s --yes":              "is not a duration",
		"cancel --newer-than soon --yes":            "is not a duration",
		"cancel --state failed --yes":               "is unknown",
		"edit --name greet --yes":                   "say what to change",
		"edit --name greet --value 1":               "give --yes if that is meant, or --dry-run",
		"edit --where-attribute x --value 1 --yes":  "--where-attribute \"x\" has no =",
		"requeue --yes":                             "give the ids of events that wait, or a filter",
		"requeue --name greet":                      "give --yes if that is meant, or --dry-run",
		"delete --attribute source --yes":           "has no =",
		"delete --canvas " + canvasA[:8] + " --yes": "",
	} {
		c.run(strings.Fields(args)...).is(exitBadInput, "", problem)
	}
	if n := c.events(); n != 7 {
		t.Fatalf("%d events are left after bad input, want 7", n)
	}
	c.run(append(greet, "--dry-run")...).is(exitOK, "would cancel 4 events, and ask the workers of those that run then to end the runs\n", "")
	c.run("cancel", "--error", "no luck", "--dry-run", "--json").is(exitOK, `{"dry_run":true,"verb":"cancel","filter":{"error":"no luck"},"counted":1}`, "")
	c.run(append(greet, "--yes")...).is(exitOK, "cancelled 3 events; asked for the end of 1 run\n", "to cancel")
	c.run(append(greet, "--yes")...).is(exitOK, "cancelled 0 events; asked for the end of 1 run\n", "to cancel")
	c.run("delete", "--canvas", canvasB, "--older-than", "50h", "--yes").is(exitOK, "deleted 1 event\n", "to delete")
	if got := one[string](c, `SELECT string_agg(id::text, ' ' ORDER BY id) FROM events_v2`); got != "3 5 6" {
		t.Errorf("events %s are left, want 3 5 6", got)
	}
}

// TestChangeIsResumed by the command that began it, with nothing beside its operation, from where it was stopped.
func TestChangeIsResumed(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	seed(c)
	var doc manyDoc
	c.run("cancel", "--name", "greet", "--canvas", canvasA, "--yes", "--json").is(exitOK, `"id":"`, "operation").into(&doc)
	id := doc.ID.String()
	c.run("cancel", "--resume", id).is(exitOK, "cancelled 3 events; asked for the end of 1 run\n", "")
	c.exec(`UPDATE bulk_operations SET state = 'stopped', after_id = 0`)
	c.exec(`UPDATE events_v2 SET locked_at = NULL WHERE id = 3`)
	c.run("cancel", "--resume", id).is(exitOK, "cancelled 4 events; asked for the end of 1 run\n", "1 event to cancel")
	for problem, args := range map[string]string{
		"is no retry: use eventctl cancel --resume " + id: "retry --resume " + id,
		"--resume and ids exclude each other":             "cancel 1 --resume " + id,
		"--resume and --reason exclude each other":        "cancel --reason x --resume " + id,
		"--resume and --value exclude each other":         "edit --value 1 --resume " + id,
		"is no uuid": "requeue --resume 5",
	} {
		c.run(strings.Fields(args)...).is(exitBadInput, "", problem)
	}
}

// TestCancelledEventIsExplained where it is shown.
func TestCancelledEventIsExplained(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	seed(c)
	c.run("cancel", "--no-notify", "--reason", "emitted twice", "--actor", "ada", "2").is(exitOK, "cancelled 1 event\n", "")
	c.run("cancel", "--no-notify", "--name", "greet", "--canvas", canvasA, "--state", "waiting", "--yes").is(exitOK, "cancelled 1 event\n", "to cancel")
	c.run("cancel", "--reason", strings.Repeat("x", 2000), "1").is(exitBadInput, "", "reason: is 2000 bytes long: the limit is 1024")
	shown := c.run("show", "2").is(exitOK, "cancelled by", "")
	if !strings.Contains(shown.out, "ada") || !strings.Contains(shown.out, "emitted twice") {
		t.Errorf("shown is %s", shown.out)
	}
	c.run("show", "2", "--json").is(exitOK, `"reason":"emitted twice","actor":"ada"`, "")
	c.run("log", "list", "--status", "cancelled").is(exitOK, "emitted twice (ada)", "")
	if n := one[int](c, `SELECT count(*) FROM event_log WHERE status = 'CANCELLED' AND reason IS NULL AND actor <> ''`); n != 1 {
		t.Errorf("%d events were cancelled by the user without a reason, want 1", n)
	}
	c.run("stats", "--canvas", canvasA, "--json").is(exitOK, `"cancelled":2`, "")
	c.run("stats", "--since", "5m", "--json").is(exitOK, `"cancelled":2`, "")
}

// TestChangesTakeAFilter edits and requeues what a filter selects.
func TestChangesTakeAFilter(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	seed(c)
	edit := []string{"edit", "--canvas", canvasA, "--name", "greet", "--value", `"new"`, "--attribute", "by=hand"}
	c.run(append(edit, "--dry-run")...).is(exitOK, "would edit 4 events, but for those that run then\n", "")
	c.run(append(edit, "--yes")...).is(exitOK, "edited 3 events; left 1 running event\n", "to edit")
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE value = '"new"' AND attributes = '{"by": "hand"}'`); n != 3 {
		t.Errorf("%d events are edited, want 3", n)
	}
	delayed := one[int](c, `SELECT count(*) FROM events_v2 WHERE delay_until > now()`)
	c.run("requeue", "--state", "delayed", "--dry-run").is(exitOK, fmt.Sprintf("would requeue %d event", delayed), "")
	c.run("requeue", "--state", "delayed", "--yes").is(exitOK, fmt.Sprintf("requeued %d event", delayed), "to requeue")
	c.run("requeue", "--attribute", "by=hand", "--state", "running", "--yes", "--json").is(exitOK, `"state":"done","counted":0,"changed":0,"running":0,"busy":0,"refused":0`, "operation")
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE delay_until > now()`); n != 0 || delayed == 0 {
		t.Errorf("of %d delayed events %d are still delayed", delayed, n)
	}
}

// TestRefusedRowIsNamed, and the others are changed.
func TestRefusedRowIsNamed(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	seed(c)
	c.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`)
	c.exec(`CREATE TRIGGER refuse BEFORE INSERT ON event_log FOR EACH ROW WHEN (NEW.id = 2) EXECUTE FUNCTION refuse()`)
	const problem = "not cancelled: event 2 cannot be changed, because the database refuses: ERROR: not this one"
	c.run("cancel", "--canvas", canvasA, "--name", "greet", "--yes").is(exitNotFound, "cancelled 2 events; asked for the end of 1 run; left 1 event that the database refuses to write\n", problem)
	c.run("cancel", "2", "5").is(exitNotFound, "", problem)
	c.run("cancel", "--name", "greet", "--state", "delayed", "--yes", "--json").is(exitNotFound, `"first_refused":[{"id":2,"reason":"cannot be changed`, "")
}
