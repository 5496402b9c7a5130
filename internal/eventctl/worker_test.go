package eventctl

import (
	"testing"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
	"eventsv2/internal/workerhandlers"
)

// TestWorkersListLiveStoppedAndDeadOnes lists a worker that has stopped and one that is dead, and shows the one that holds an
// event, and the one whose attempt failed. One that is live is shown by the deployed programs, in
// test/e2e.
func TestWorkersListLiveStoppedAndDeadOnes(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("worker", "list").is(exitOK, "no workers\n", "")
	c.run("worker", "list", "--json").is(exitOK, `{"items":[]}`, "")
	seed(c)
	c.exec(`INSERT INTO event_workers (number, host, pid, version, handlers, started_at, stopped_at) VALUES
		(7, E'a\x1b[31m', 12, 'v1.2.3', '[{"module": "WORKER", "name": "greet", "modifier": "_"}]', now() - interval '50 h 30 min', NULL),
		(8, 'b', 13, 'v1.2.4', '[]', now() - interval '49 h 30 min', now() - interval '5 h 30 min')`)
	c.exec(`UPDATE events_v2 SET claim_id = (7::bigint << 31) + 5 + attempts WHERE id = 4`)
	c.run("worker", "list").is(exitOK, "", "").golden("workers")
	c.run("show", "4").is(exitOK, "", "").withoutTimes().golden("show_held")
	var workers view.Page[view.Worker]
	c.run("worker", "list", "--json").is(exitOK, "", "").into(&workers)
	if len(workers.Items) != 2 || len(workers.Items[0].Handlers) != 1 || workers.Items[0].Handlers[0] != (workerhandlers.Handler{Module: "WORKER", Name: "greet", Modifier: "_"}) {
		t.Errorf("the workers are %+v", workers.Items)
	}
	var doc view.Page[view.Event]
	c.run("list", "--json", "--after", "2", "--limit", "2").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 2 || doc.Items[0].Holder != nil {
		t.Fatalf("an event of a worker that is not known is shown as %+v", doc.Items)
	}
	e := doc.Items[1]
	if e.LastError != "no luck\x1b[2J" || e.Holder == nil || e.Holder.Number != 7 || e.Holder.State != inspect.WorkerDead || e.Holder.PID != 12 {
		t.Errorf("an event of a dead worker is shown as %+v, held by %+v", e, e.Holder)
	}
}
