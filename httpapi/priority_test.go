package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/test/rig"
)

// TestPriorityIsThatOfTheQueue: it is stored, shown and filtered, and an unknown one writes nothing.
func TestPriorityIsThatOfTheQueue(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	event := func(more string) string {
		return fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":1%s}`, rig.Canvas, more)
	}
	for _, more := range []string{`,"priority":"urgent"`, `,"priority":""`, `,"priority":"High"`} {
		c.wants(422, "high, normal, low", all, "POST", "/events", event(more))
		c.wants(422, "high, normal, low", all, "POST", "/events/batch", `{"events":[`+event("")+`,`+event(more)+`]}`)
	}
	if n := c.Waiting(); n != 0 {
		t.Fatalf("%d events were written", n)
	}
	c.wants(201, `{"ids":[1]}`, all, "POST", "/events", event(`,"priority":"high"`))
	c.wants(201, `{"ids":[2,3,4]}`, all, "POST", "/events/batch", `{"events":[`+event(`,"priority":"low"`)+`,`+event(`,"priority":"normal"`)+`,`+event("")+`]}`)
	if got := rig.One[string](c.Rig, `SELECT string_agg(coalesce(priority::text, 'NULL'), ' ' ORDER BY id) FROM events_v2`); got != "high low NULL NULL" {
		t.Errorf("the priorities are %s", got)
	}
	c.wants(200, `"priority":"high"`, all, "GET", "/events/1", "")
	if shown := c.wants(200, `"id":3`, all, "GET", "/events/3", ""); strings.Contains(shown, "priority") {
		t.Errorf("a normal one is shown as %s", shown)
	}
	list := "/events?canvas_id=" + rig.Canvas.String() + "&priority="
	for priority, want := range map[string]string{"high": "1", "low": "2", "normal": "3 4"} {
		found := c.wants(200, "", all, "GET", list+priority, "")
		for _, id := range strings.Fields("1 2 3 4") {
			if is, should := strings.Contains(found, `"id":`+id+","), strings.Contains(want, id); is != should {
				t.Errorf("%s: event %s is found: %t", priority, id, is)
			}
		}
	}
	c.wants(422, "high, normal, low", all, "GET", list+"urgent", "")
}
