package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/internal/view"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// root makes a token for all canvases.
func (c *client) root(verbs ...access.Verb) string {
	c.t.Helper()
	_, secret, err := c.tokens.Create(testenv.Context(c.t), audit.Actor{Name: "test", Via: "test"}, access.NewToken{Name: "t", Grant: access.Grant{Verbs: verbs}})
	if err != nil {
		c.t.Fatal(err)
	}
	return secret
}

// TestLimitsOverHTTP sets, lists and removes a limit of each kind, which takes an administrator.
func TestLimitsOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	operator := c.token(rig.Canvas, access.Read, access.Operate)
	canvas := rig.Canvas.String()
	for _, k := range []struct{ path, body, query, shown string }{
		{"/limits/concurrency", `"module":"WORKER","name":"greet","max_running":3`, "&module=WORKER&name=greet", `"name":"greet","max_running":3`},
		{"/limits/concurrency", `"ordering_key":"order 17","max_running":2`, "&ordering_key=order%2017", `"ordering_key":"order 17","max_running":2`},
		{"/limits/concurrency", `"every_key":true,"max_running":2`, "&every_key=true", `"every_key":true,"max_running":2`},
		{"/limits/concurrency", `"max_running":9`, "", `"max_running":9`},
		{"/limits/rate", `"module":"WORKER","name":"greet","per_minute":5`, "&module=WORKER&name=greet", `"per_minute":5,"mode":"exact","minute_used":0`},
		{"/limits/rate", `"per_day":7,"mode":"approximate"`, "", `"per_day":7,"mode":"approximate"`},
	} {
		body, query := fmt.Sprintf(`{"canvas_id":%q,%s}`, canvas, k.body), k.path+"?canvas_id="+canvas
		c.wants(403, "administer", operator, "PUT", k.path, body)
		c.wants(200, "{", all, "PUT", k.path, body)
		c.wants(200, k.shown, operator, "GET", query, "")
		c.wants(403, "administer", operator, "DELETE", query+k.query, "")
		c.wants(200, `"changed":true`, all, "DELETE", query+k.query, "")
		c.wants(200, `"changed":false`, all, "DELETE", query+k.query, "")
		c.wants(200, `{"items":[]}`, operator, "GET", query, "")
		c.wants(403, "read", c.token(another, access.Verbs()...), "GET", query, "")
	}
	if n := c.audited("limit"); n != 12 {
		t.Errorf("%d changes of limits were audited, want 12", n)
	}
	c.wants(422, "exclude", all, "PUT", "/limits/concurrency", fmt.Sprintf(`{"canvas_id":%q,"module":"M","name":"n","every_key":true,"max_running":1}`, canvas))
	c.wants(422, "", all, "PUT", "/limits/concurrency", fmt.Sprintf(`{"canvas_id":%q,"max_running":0}`, canvas))
	c.wants(422, "one of them is needed", all, "PUT", "/limits/rate", fmt.Sprintf(`{"canvas_id":%q}`, canvas))
	c.wants(422, "", all, "PUT", "/limits/rate", fmt.Sprintf(`{"canvas_id":%q,"module":"M","per_day":1}`, canvas))
}

// TestCronsOverHTTP adds a definition, lists it with its slots, switches and removes it.
func TestCronsOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	operator := c.token(rig.Canvas, access.Read, access.Operate)
	name := fmt.Sprintf(`"canvas_id":%q,"name":"nightly"`, rig.Canvas)
	set, query := `{`+name+`,"schedule":"30 2 * * *","time_zone":"Europe/Berlin","skip_if_paused":true}`, "canvas_id="+rig.Canvas.String()
	c.wants(403, "administer", operator, "PUT", "/crons", set)
	c.wants(200, `"schedule":"30 2 * * *","time_zone":"Europe/Berlin","missed":"latest","skip_if_paused":true,"enabled":true`, all, "PUT", "/crons", set)
	c.wants(200, `"name":"nightly"`, operator, "GET", "/crons?"+query, "")
	c.Exec(`INSERT INTO cron_records (cron_id, slot, event_id, skipped) SELECT id, now(), 0, 'paused' FROM cron_definitions`)
	c.wants(200, `"last_slot_skipped":"paused"`, operator, "GET", "/crons?"+query, "")
	var next view.Page[view.Slot]
	if err := json.Unmarshal([]byte(c.wants(200, "", operator, "GET", "/crons/next?name=nightly&limit=3&"+query, "")), &next); err != nil || len(next.Items) != 3 {
		t.Errorf("the next slots are %v, %v", next, err)
	}
	c.wants(200, `"enabled":false`, all, "POST", "/crons/disable", `{`+name+`}`)
	c.wants(200, `"enabled":false`, operator, "GET", "/crons?"+query, "")
	c.wants(200, `"enabled":true`, all, "POST", "/crons/enable", `{`+name+`}`)
	c.wants(201, `{"ids":[`, all, "POST", "/crons/run", `{`+name+`}`)
	c.wants(200, `"module":"CRON","name":"nightly"`, operator, "GET", "/events?"+query, "")
	c.wants(403, "administer", operator, "POST", "/crons/run", `{`+name+`}`)
	c.wants(403, "administer", operator, "POST", "/crons/disable", `{`+name+`}`)
	c.wants(403, "administer", operator, "DELETE", "/crons?name=nightly&"+query, "")
	c.wants(200, "nightly", all, "DELETE", "/crons?name=nightly&"+query, "")
	for action, want := range map[string]int{"set_cron": 1, "disable_cron": 1, "enable_cron": 1, "run_cron": 1, "remove_cron": 1} {
		if n := c.audited(action); n != want {
			t.Errorf("%s: %d entries of the audit log, want %d", action, n, want)
		}
	}
	c.wants(404, "no such cron", all, "DELETE", "/crons?name=nightly&"+query, "")
	c.wants(404, "no such cron", all, "POST", "/crons/enable", `{`+name+`}`)
	c.wants(404, "no such cron", all, "POST", "/crons/run", `{`+name+`}`)
	c.wants(404, "no such cron", all, "GET", "/crons/next?name=nightly&"+query, "")
	c.wants(422, "schedule", all, "PUT", "/crons", `{`+name+`,"schedule":"whenever"}`)
	c.wants(422, "zone", all, "PUT", "/crons", `{`+name+`,"schedule":"every day","time_zone":"Mars"}`)
}

// TestCronRunIsRepeatedOnce: a request that is sent again with its Idempotency-Key emits nothing, and the key of another event is refused.
func TestCronRunIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	cron := func(name string) string {
		return fmt.Sprintf(`{"canvas_id":%q,"name":%q,"schedule":"30 2 * * *"}`, rig.Canvas, name)
	}
	run := func(status int, answer, name, key string) {
		t.Helper()
		c.wants(status, answer, all, "POST", "/crons/run", fmt.Sprintf(`{"canvas_id":%q,"name":%q}`, rig.Canvas, name), "Idempotency-Key", key)
	}
	c.wants(200, "nightly", all, "PUT", "/crons", cron("nightly"))
	c.wants(200, "weekly", all, "PUT", "/crons", cron("weekly"))
	run(201, `{"ids":[1]}`, "nightly", "today")
	c.Exec(`UPDATE events_v2 SET value = '"that of another second"'`) // the value has the time of the run
	run(200, `{"ids":[1],"repeat":true}`, "nightly", "today")
	run(422, "the Idempotency-Key is that of event 1, which has another handler", "weekly", "today")
	if n := rig.One[int](c.Rig, `SELECT count(*) FROM events_v2`); n != 1 {
		t.Errorf("%d events were emitted", n)
	}
	if n := c.audited("run_cron"); n != 1 {
		t.Errorf("%d runs are audited", n)
	}
	run(201, `{"ids":[`, "nightly", "tomorrow")
	if got := rig.One[string](c.Rig, `SELECT string_agg(unique_seconds::text, ' ' ORDER BY id) FROM events_v2`); got != "86400 86400" {
		t.Errorf("the keys hold for %s s after the end", got)
	}
}

// TestStatsAndWorkersAreListed reads what was counted, and who runs.
func TestStatsAndWorkersAreListed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	c.Exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, waits, runs)
		SELECT date_trunc('minute', now() - m * interval '1 minute', 'UTC'), $1, 'WORKER', 'greet', 3, 2, '{1}', '{1}' FROM generate_series(1, 2) AS m`, [16]byte(rig.Canvas))
	path := "/stats?canvas_id=" + rig.Canvas.String()
	c.wants(200, `"emitted":3,"completed":2`, all, "GET", path, "")
	c.wants(200, `"emitted":6,"completed":4`, all, "GET", path+"&per=all&name=greet", "")
	c.wants(200, `"wait_p50_seconds"`, all, "GET", path+"&per=hour&since_seconds=2678400", "")
	c.wants(200, `{"items":[]}`, all, "GET", path+"&name=other", "")
	c.wants(422, "per=hour", all, "GET", path+"&since_seconds=86401", "")
	c.wants(403, "read", c.token(another, access.Verbs()...), "GET", path, "")

	c.Exec(`INSERT INTO event_workers (number, host, pid, version, handlers) VALUES (7, 'host-1', 42, 'v1', $1)`,
		fmt.Sprintf(`[{"module":"WORKER","name":"greet","modifier":"_"},{"module":"WORKER","name":"own","modifier":"_","canvas_id":%q}]`, rig.Canvas))
	c.wants(200, `"number":7,"state":"dead","host":"host-1","pid":42,"version":"v1"`, c.root(access.Read), "GET", "/workers", "")
	c.wants(403, "all canvases", all, "GET", "/workers", "")
}

// TestStatsAreListedByPage of handlers, each with all that it has; together they are all.
func TestStatsAreListedByPage(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	const handlers, minutes = 45, 1000
	c.Exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted)
		SELECT date_trunc('minute', now() - m * interval '1 minute', 'UTC'), canvas, 'M' || h % 3, 'h' || h, h
		FROM generate_series(1, $2::int) AS m, generate_series(1, $3::int) AS h, unnest(ARRAY[$1::uuid, $4::uuid]) AS canvas`, [16]byte(rig.Canvas), minutes, handlers, [16]byte(another))
	c.Exec(`ANALYZE event_minutes`)
	for per, times := range map[string]int{"minute": minutes, "hour": minutes/60 + 2, "all": 1} {
		path := "/stats?canvas_id=" + rig.Canvas.String() + "&since_seconds=86400&per=" + per
		seen, items, emitted, pages := map[string]int{}, 0, 0, 0
		for after := "&"; after != ""; pages++ {
			var page struct {
				Items []struct {
					Module, Name string
					Emitted      int
				}
				Next string
			}
			answer, body := c.do(all, "GET", path+after, "")
			if err := json.Unmarshal([]byte(body), &page); err != nil || answer != 200 {
				t.Fatalf("%s%s: %d, %v", path, after, answer, err)
			}
			for _, item := range page.Items {
				if at, known := seen[item.Module+item.Name]; known && at != pages {
					t.Fatalf("per %s, %s is on page %d and on %d", per, item.Name, at, pages)
				}
				seen[item.Module+item.Name], items, emitted = pages, items+1, emitted+item.Emitted
			}
			if after = ""; page.Next != "" {
				after = "&after=" + page.Next
			}
		}
		if len(seen) != handlers || emitted != minutes*handlers*(handlers+1)/2 || items > handlers*times || pages != 6 {
			t.Errorf("per %s there are %d handlers, %d items and %d emits on %d pages", per, len(seen), items, emitted, pages)
		}
	}
	path := "/stats?canvas_id=" + rig.Canvas.String()
	c.wants(200, `"module":"M0","name":"h3"`, all, "GET", path+"&module=M0&name=h3&since_seconds=86400", "")
	for _, wrong := range []string{"%21", "WyJhIl0x", "e30"} {
		c.wants(422, "after", all, "GET", path+"&after="+wrong, "")
	}
}

// TestTreeHidesOtherCanvases shows a family, without what is on a canvas that the caller may not read.
func TestTreeHidesOtherCanvases(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ids := c.Emit(c.Copies(3)...)
	c.Exec(`UPDATE events_v2 SET parent_id = $1 WHERE id > $1`, int64(ids[0]))
	c.Exec(`UPDATE events_v2 SET canvas_id = $1 WHERE id = $2`, [16]byte(another), int64(ids[2]))
	var found struct {
		Items []struct {
			ID     eventqueue.EventID
			Parent eventqueue.EventID `json:"parent_id"`
		}
	}
	if err := json.Unmarshal([]byte(c.wants(200, "", c.token(rig.Canvas, access.Read), "GET", "/events/2/tree", "")), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 2 || found.Items[0].ID != ids[0] || found.Items[1].ID != ids[1] || found.Items[1].Parent != ids[0] {
		t.Errorf("the tree is %+v", found)
	}
	c.wants(404, "no such event", c.token(another, access.Read), "GET", "/events/2/tree", "")
	c.wants(200, `"id":3`, c.root(access.Read), "GET", "/events/1/tree", "")
	c.wants(200, `"more":true`, c.root(access.Read), "GET", "/events/1/tree?limit=1", "")
}

// TestAttributesOverHTTP lists only the events, and the history, that have all of some attributes.
func TestAttributesOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	events := c.Copies(2)
	events[0].Attributes = map[string]string{"user": "ada", "formula": "a=b"}
	events[1].Attributes = map[string]string{"user": "eve"}
	c.Emit(events...)
	token := c.token(rig.Canvas, access.Verbs()...)
	path := "?canvas_id=" + rig.Canvas.String()
	c.wants(200, `{"items":[{"id":1,`, token, "GET", "/events"+path+"&attribute=user%3Dada&attribute=formula%3Da%3Db", "")
	c.wants(200, `{"items":[]}`, token, "GET", "/events"+path+"&attribute=user%3Dada&attribute=formula%3Dc", "")
	c.wants(200, "changed", token, "POST", "/events/2/cancel", `{}`)
	c.wants(200, `{"items":[{"id":2,`, token, "GET", "/history"+path+"&attribute=user%3Deve", "")
	c.wants(200, `{"items":[]}`, token, "GET", "/history"+path+"&attribute=user%3Dada", "")
	c.wants(422, "key=value", token, "GET", "/events"+path+"&attribute=user", "")
}

// TestTokensOverHTTP makes tokens, which never have more rights than whoever makes them, and revokes them.
func TestTokensOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	admin := c.token(rig.Canvas, access.Read, access.Operate, access.Administer)
	stranger := c.token(another, access.Verbs()...)
	root := c.root(access.Verbs()...)
	of := func(verbs, canvas string, more string) string {
		return `{"name":"shop","verbs":` + verbs + `,"canvases":["` + canvas + `"]` + more + `}`
	}
	var made struct{ ID, Token string }
	if err := json.Unmarshal([]byte(c.wants(201, `"token":"evt_`, admin, "POST", "/tokens", of(`["read"]`, rig.Canvas.String(), ""))), &made); err != nil {
		t.Fatal(err)
	}
	c.wants(200, `{"items":[]}`, made.Token, "GET", "/events?canvas_id="+rig.Canvas.String(), "")
	c.wants(403, "", made.Token, "GET", "/events?canvas_id="+another.String(), "")
	if shown := c.wants(200, made.ID, admin, "GET", "/tokens", ""); strings.Contains(shown, made.Token) {
		t.Errorf("the list has the secret: %s", shown)
	}
	// Whoever has less makes no more.
	c.wants(403, "administer", made.Token, "POST", "/tokens", of(`["read"]`, rig.Canvas.String(), ""))
	c.wants(403, "administer", made.Token, "GET", "/tokens", "")
	c.wants(403, "cannot do more", admin, "POST", "/tokens", of(`["read","emit"]`, rig.Canvas.String(), ""))
	c.wants(403, "administer", admin, "POST", "/tokens", of(`["read"]`, another.String(), ""))
	c.wants(403, "administer", admin, "POST", "/tokens", `{"name":"all","verbs":["read"]}`)
	c.wants(201, `"verbs":["administer"]`, root, "POST", "/tokens", `{"name":"all","verbs":["administer"]}`)
	var short struct{ Token string }
	if err := json.Unmarshal([]byte(c.wants(201, `"expires_at"`, admin, "POST", "/tokens", of(`["read","administer"]`, rig.Canvas.String(), `,"expires_in_seconds":3600`))), &short); err != nil {
		t.Fatal(err)
	}
	c.wants(201, `"expires_at"`, short.Token, "POST", "/tokens", of(`["read"]`, rig.Canvas.String(), ""))
	c.wants(403, "valid for longer", short.Token, "POST", "/tokens", of(`["read"]`, rig.Canvas.String(), `,"expires_in_seconds":3601`))
	c.wants(201, "evt_", short.Token, "POST", "/tokens", of(`["read"]`, rig.Canvas.String(), `,"expires_in_seconds":60`))
	for _, body := range []string{of(`["fly"]`, rig.Canvas.String(), ""), of(`[]`, rig.Canvas.String(), ""), of(`["read"]`, "x", ""), `{"name":"","verbs":["read"]}`, `{"name":"a","verbs":["read"],"canvases":[]}`,
		of(`["read"]`, eventqueue.CanvasID{}.String(), "")} {
		c.wants(422, "", admin, "POST", "/tokens", body)
	}
	// Nor does a stranger see or revoke it.
	if shown := c.wants(200, "", stranger, "GET", "/tokens", ""); strings.Contains(shown, made.ID) {
		t.Errorf("a stranger sees the token: %s", shown)
	}
	c.wants(404, "no such token", stranger, "DELETE", "/tokens/"+made.ID, "")
	c.wants(403, "administer", made.Token, "DELETE", "/tokens/"+made.ID, "")
	c.wants(200, `"revoked_at"`, admin, "DELETE", "/tokens/"+made.ID, "")
	c.wants(404, "no such token", admin, "DELETE", "/tokens/"+made.ID, "")
	c.wants(422, "", admin, "DELETE", "/tokens/1", "")
	c.wants(401, "", made.Token, "GET", "/events?canvas_id="+rig.Canvas.String(), "")
	if created, revoked := c.audited("create_token"), c.audited("revoke_token"); created != 3 || revoked != 1 {
		t.Errorf("%d created and %d revoked tokens were audited, want 3 and 1", created, revoked)
	}
}
