package eventctl

import (
	"testing"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/workerhandlers"
)

// TestWorkers lists a worker that has stopped and one that is dead, and shows the one that holds an
// event, and the one whose attempt failed. One that is live is shown by the deployed programs, in
// test/e2e.
func TestWorkers(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("worker", "list").is(exitOK, "no workers\n", "")
	c.run("worker", "list", "--json").is(exitOK, `{"workers":[]}`, "")
	seed(c)
	c.exec(`INSERT INTO event_workers (number, host, pid, version, handlers, started_at, stopped_at) VALUES
		(7, E'a\x1b[31m', 12, 'v1.2.3', '[{"module": "WORKER", "name": "greet", "modifier": "_"}]', now() - interval '50 h 30 min', NULL),
		(8, 'b', 13, 'v1.2.4', '[]', now() - interval '49 h 30 min', now() - interval '5 h 30 min')`)
	c.exec(`UPDATE events_v2 SET claim_id = (7::bigint << 31) + 5 + attempts WHERE id = 4`)
	c.run("worker", "list").is(exitOK, "", "").golden("workers")
	c.run("show", "4").is(exitOK, "", "").withoutTimes().golden("show_held")
	var doc struct{ Events []eventDoc }
	c.run("list", "--json", "--after", "2", "--limit", "2").is(exitOK, "", "").into(&doc)
	if len(doc.Events) != 2 || doc.Events[0].Holder != nil {
		t.Fatalf("an event of a worker that is not known is shown as %+v", doc.Events)
	}
	e := doc.Events[1]
	if e.LastError != "no luck\x1b[2J" || e.Holder == nil || e.Holder.Number != 7 || e.Holder.State != inspect.WorkerDead || e.Holder.PID != 12 ||
		len(e.Holder.Handlers) != 1 || e.Holder.Handlers[0] != (workerhandlers.Doc{Module: "WORKER", Name: "greet", Modifier: "_"}) {
		t.Errorf("an event of a dead worker is shown as %+v, held by %+v", e, e.Holder)
	}
}
