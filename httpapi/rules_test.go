package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/internal/view"
	"eventsv2/test/rig"
)

// TestRulesOfPrefixesAndModifiersOverHTTP adds a rule of several handlers, lists it, lifts it at a rate, and then at once.
func TestRulesOfPrefixesAndModifiersOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.Emit(c.Event("1"), c.Event("2"), c.Event("3"))
	operator := c.token(rig.Canvas, access.Read, access.Operate)
	body := func(more string) string {
		return fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"gre","prefix":true%s}`, rig.Canvas, more)
	}
	rules := func() (page view.Page[view.Rule]) {
		t.Helper()
		if err := json.Unmarshal([]byte(c.wants(200, "", operator, "GET", "/rules?canvas_id="+rig.Canvas.String(), "")), &page); err != nil {
			t.Fatal(err)
		}
		return page
	}
	c.wants(200, `"prefix":true`, operator, "POST", "/handlers/pause", body(`,"reason":"a flood"`))
	c.wants(200, `"modifier":"x"`, operator, "POST", "/handlers/pause", body(`,"modifier":"x"`))
	if all := rules().Items; len(all) != 2 || !all[0].Prefix || all[0].Reason != "a flood" || all[0].Actor != "token:t" || all[0].CreatedAt == nil || all[1].Modifier != "x" {
		t.Errorf("the rules are %+v", all)
	}
	c.wants(200, `"changed":false`, operator, "POST", "/handlers/unpause", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"gre"}`, rig.Canvas))
	var lifted view.RuleChange
	if err := json.Unmarshal([]byte(c.wants(200, "", operator, "POST", "/handlers/unpause", body(`,"rate_per_second":1`))), &lifted); err != nil {
		t.Fatal(err)
	}
	if !lifted.Changed || !lifted.GoesOn || lifted.Rate != 1 || lifted.Notified == nil || *lifted.Notified < 1 || len(lifted.Left) != 1 || lifted.Left[0].Modifier != "x" {
		t.Errorf("lifted at a rate it is %+v", lifted)
	}
	if all := rules().Items; len(all) != 2 || all[0].Rate != 1 || all[0].ReleasedTo == 0 {
		t.Errorf("while it is lifted the rules are %+v", all)
	}
	c.wants(200, `"changed":true`, operator, "POST", "/handlers/unpause", body(""))
	c.wants(422, "rate_per_second", operator, "POST", "/handlers/unpause", body(`,"rate_per_second":100001`))
	c.wants(422, "name", operator, "POST", "/handlers/pause", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"","prefix":true}`, rig.Canvas))
	c.wants(403, "administer", operator, "POST", "/handlers/block", body(""))
}

// TestWholeQueueIsPausedOverHTTP by identities that administer all canvases, and by no others.
func TestWholeQueueIsPausedOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	whole := fmt.Sprintf(`{"canvas_id":%q,"module":"","name":"","prefix":true}`, eventqueue.CanvasID{})
	c.wants(403, "all canvases", c.token(rig.Canvas, access.Verbs()...), "POST", "/handlers/block", whole)
	_, all, err := c.tokens.Create(t.Context(), audit.Actor{Name: "test", Via: "test"}, access.NewToken{Name: "all", Grant: access.Grant{Verbs: access.Verbs()}})
	if err != nil {
		t.Fatal(err)
	}
	c.wants(200, `"changed":true`, all, "POST", "/handlers/block", whole)
	c.wants(200, `"changed":true`, all, "POST", "/handlers/unblock", whole)
	c.wants(422, "zero uuid", all, "POST", "/handlers/block", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"a"}`, eventqueue.CanvasID{}))
}
