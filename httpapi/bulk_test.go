package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// counted counts a change of many events and returns the path of its operation.
func (c *client) counted(n int, token, body string) string {
	c.t.Helper()
	var op struct{ ID string }
	answer := c.wants(201, fmt.Sprintf(`"counted":%d,`, n), token, "POST", "/bulk", body)
	if err := json.Unmarshal([]byte(answer), &op); err != nil {
		c.t.Fatal(err)
	}
	return "/bulk/" + op.ID
}

// TestBulkChangesTheFilteredEvents changes the events of a filter in each way, and reads the progress.
func TestBulkChangesTheFilteredEvents(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	c.Emit(c.Copies(3)...)
	canvas := fmt.Sprintf(`"filter":{"canvas_id":%q}`, rig.Canvas)
	for _, body := range []string{`{"verb":"edit",` + canvas + `,"edit":{"value":"new","delay_seconds":60}}`, `{"verb":"cancel",` + canvas + `,"reason":"wrong"}`,
		fmt.Sprintf(`{"verb":"retry","filter":{"canvas_id":%q,"state":"cancelled"},"edit":{"delay_seconds":60}}`, rig.Canvas),
		`{"verb":"run",` + canvas + `}`, `{"verb":"delete",` + canvas + `}`} {
		path := c.counted(3, all, body)
		c.wants(200, `"state":"counted"`, all, "GET", path, "")
		c.wants(200, `"state":"running"`, all, "POST", path+"/confirm", "")
		rig.RunOperations(t, c.bulk)
		c.wants(200, `"state":"done","counted":3,"changed":3`, all, "GET", path, "")
		c.wants(200, `"state":"done"`, all, "POST", path+"/confirm", "")
		c.wants(200, path[len("/bulk/"):], all, "GET", "/bulk", "")
	}
	if n := c.Waiting(); n != 0 {
		t.Errorf("%d events wait, want none", n)
	}
	c.Exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		VALUES (nextval('events_id_seq'), $1, 'WORKER', 'greet', '_', '1', 'COMPLETED', 0, 1, now())`, [16]byte(rig.Canvas))
	replay := c.counted(1, all, `{"verb":"replay","rate":5,`+canvas+`}`)
	c.wants(200, `"rate":5`, all, "POST", replay+"/confirm", "")
	c.wants(200, `"state":"stopped"`, all, "POST", replay+"/stop", "")
	c.wants(200, `"state":"running"`, all, "POST", replay+"/resume", "")
	rig.RunOperations(t, c.bulk)
	c.wants(200, `"state":"done","counted":1,"changed":1`, all, "GET", replay, "")
	original := rig.One[int](c.Rig, `SELECT id FROM event_log`)
	c.wants(200, fmt.Sprintf(`"replayed_from":%d`, original), all, "GET", fmt.Sprintf("/events/%d", rig.One[int](c.Rig, `SELECT id FROM events_v2`)), "")
	c.Exec(`DELETE FROM events_v2`)
	path := c.counted(0, all, `{"verb":"cancel",`+canvas+`}`)
	c.wants(200, `"state":"stopped"`, all, "POST", path+"/stop", "")
}

// TestInvalidBulkIsRefused without rights, without a filter, to whoever has not counted, and for what makes no sense.
func TestInvalidBulkIsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	second := c.token(rig.Canvas, access.Verbs()...)
	reader := c.token(rig.Canvas, access.Read)
	stranger := c.token(another, access.Verbs()...)
	c.Emit(c.Copies(2)...)
	of := func(filter string) string { return `{"verb":"cancel","filter":` + filter + `}` }
	canvas := fmt.Sprintf(`{"canvas_id":%q}`, rig.Canvas)
	c.wants(403, "on all canvases", all, "POST", "/bulk", of(`{}`))
	c.wants(403, "on all canvases", all, "POST", "/bulk", of(`{"name":"greet"}`))
	c.wants(403, "operate", reader, "POST", "/bulk", of(canvas))
	c.wants(403, "operate", stranger, "POST", "/bulk", of(canvas))
	c.wants(403, "read", c.token(rig.Canvas, access.Operate), "POST", "/bulk", of(canvas))
	c.wants(422, "", all, "POST", "/bulk", `{"verb":"cancel"}`)
	operator := c.token(rig.Canvas, access.Read, access.Operate)
	replay := `{"verb":"replay","filter":` + canvas + `}`
	c.wants(403, "emit", operator, "POST", "/bulk", replay)
	c.wants(422, "RETAIN_HISTORY=true", all, "POST", "/bulk", replay)
	c.wants(422, "", all, "POST", "/bulk", `{"verb":"replay","rate":1000000,"filter":`+canvas+`}`)
	c.Exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		VALUES (nextval('events_id_seq'), $1, 'WORKER', 'greet', '_', '1', 'COMPLETED', 0, 1, now())`, [16]byte(rig.Canvas))
	stopped := c.counted(1, all, replay)
	c.wants(200, "running", all, "POST", stopped+"/confirm", "")
	c.wants(200, "stopped", operator, "POST", stopped+"/stop", "")
	c.wants(403, "emit", operator, "POST", stopped+"/resume", "")
	c.wants(422, "", all, "POST", "/bulk", `{"verb":"destroy","filter":`+canvas+`}`)
	c.wants(422, "changes nothing", all, "POST", "/bulk", `{"verb":"edit","filter":`+canvas+`}`)
	_, root, err := c.tokens.Create(testenv.Context(t), audit.Actor{Name: "test", Via: "test"}, access.NewToken{Name: "root", Grant: access.Grant{Verbs: access.Verbs()}})
	if err != nil {
		t.Fatal(err)
	}
	c.wants(422, "the filter is empty", root, "POST", "/bulk", of(`{}`))
	c.wants(422, "zero uuid", root, "POST", "/bulk", of(fmt.Sprintf(`{"canvas_id":%q}`, eventqueue.CanvasID{})))

	path := c.counted(2, all, of(canvas))
	c.wants(403, "who has counted", second, "POST", path+"/confirm", "")
	c.wants(403, "operate", reader, "POST", path+"/confirm", "")
	c.wants(403, "operate", reader, "POST", path+"/stop", "")
	c.wants(404, "no such operation", stranger, "GET", path, "")
	c.wants(404, "no such operation", stranger, "POST", path+"/stop", "")
	c.wants(404, "no such operation", all, "GET", "/bulk/6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11", "")
	c.wants(422, "", all, "GET", "/bulk/1", "")
	everywhere := c.counted(2, root, of(`{"name":"greet"}`))
	c.wants(404, "no such operation", all, "GET", everywhere, "")
	c.Exec(`UPDATE bulk_operations SET expires_at = now()`)
	c.wants(409, "too old", all, "POST", path+"/confirm", "")
	rig.RunOperations(t, c.bulk)
	if n := c.Waiting(); n != 2 {
		t.Errorf("%d events wait, want all 2", n)
	}
	c.wants(200, `{"items":[]}`, stranger, "GET", "/bulk", "")
}
