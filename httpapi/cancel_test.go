package httpapi_test

import (
	"testing"

	"eventsv2/access"
	"eventsv2/test/rig"
)

// TestCancelOfARunningEventIsAnswered: its worker is asked to end the run, as the event shows, and the audit log has who asked.
func TestCancelOfARunningEventIsAnswered(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all, id := c.token(rig.Canvas, access.Verbs()...), c.Emit(c.Copies(1)...)[0].String()
	c.Exec(`UPDATE events_v2 SET locked_at = now()`)
	c.wants(409, "is running", all, "DELETE", "/events/"+id, "")
	c.wants(200, `{"result":"ending"}`, all, "POST", "/events/"+id+"/cancel", `{"reason":"wrong"}`)
	c.wants(200, `{"result":"ending"}`, all, "POST", "/events/"+id+"/cancel", `{"reason":"again"}`)
	c.wants(200, `"cancelling":true,"reason":"wrong","actor":"token:t"`, all, "GET", "/events/"+id, "")
	c.wants(200, "while it ran, and is not run again: wrong.", all, "GET", "/events/"+id+"/explain", "")
	if n := c.audited("cancel_run"); n != 1 {
		t.Errorf("%d rows of the cancel", n)
	}
}
