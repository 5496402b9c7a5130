package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/trace"
	"eventsv2/test/testenv"
)

// TestTraceSurvivesRetries emits in a transaction, so that the notification is the relay's, which knows
// no trace; the first run fails. Both requests have the trace and the attributes of the emitter, and
// so has the history. What the target's own program emits then is drawn as a family.
func TestTraceSurvivesRetries(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, (*rig).testTrace, "greet", "bill")
}

func (r *rig) testTrace() {
	t := r.t
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	ctx := trace.With(testenv.Context(t), "00-"+traceID+"-00f067aa0ba902b7-01")
	r.start("worker", map[string]string{"RETAIN_HISTORY": "true"}).await("worker started")
	r.start("cron", nil).await("cron started")
	failed := false
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/greet" && !failed { // one event, so one request at a time
			failed = true
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	first := event("greet", `1`)
	first.Attributes = map[string]string{"request_id": "7f 3a", "user": "ada"}
	var id eventqueue.EventID
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		pending, err := r.queue.EmitTx(ctx, tx, first)
		if err == nil {
			id = pending.IDs[0]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, request := range r.target.await(t, 2) {
		h := request.header
		if !strings.Contains(h.Get("Traceparent"), traceID) || h.Get("Ce-Requestid") != "7f%203a" || h.Get("Ce-User") != "ada" || h.Get("Ce-Parentid") != "" {
			t.Errorf("request %d has the headers %v", i, h)
		}
	}
	r.awaitSQL("it is in the history, with its attributes", `SELECT count(*) = 1 FROM event_log
		WHERE id = $1 AND retries = 1 AND attributes @> '{"request_id": "7f 3a", "user": "ada"}' AND attributes ->> 'traceparent' LIKE '%'||$2||'%'`, id, traceID)

	// The program behind the target emits a child, and that of the child a child of the child.
	child := event("bill", `2`)
	child.ParentID = id
	childID := r.emit(child)[0]
	grandchild := event("bill", `3`)
	grandchild.ParentID = childID
	grandchild.Delay = eventqueue.MaxRequeue
	r.emit(grandchild)
	if request := r.target.await(t, 3)[2]; request.header.Get("Ce-Parentid") != id.String() {
		t.Errorf("the child has the headers %v", request.header)
	}
	r.awaitSQL("the child is in the history", `SELECT count(*) = 2 FROM event_log`)
	want := "1  completed  WORKER/greet/_\n└─ 2  completed  WORKER/bill/_  ←\n   └─ 3  delayed  WORKER/bill/_\n"
	if out := r.eventctlSays("tree", childID.String()); !strings.Contains(out, want) {
		t.Errorf("eventctl tree draws\n%s\nwant\n%s", out, want)
	}
	if out := r.eventctlSays("log", "list", "--attribute", "user=ada", "--json"); !strings.Contains(out, `"request_id":"7f 3a"`) || strings.Count(out, `"state":"`) != 1 {
		t.Errorf("eventctl log list --attribute lists %s", out)
	}
}
