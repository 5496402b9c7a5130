package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/httpapi"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

var update = flag.Bool("update", false, "rewrite testdata/openapi.json")

// another is a tenant beside that of the rig.
var another = eventqueue.CanvasID{0xca, 0x17, 15: 2}

// client makes requests to an API on a database of its own.
type client struct {
	*rig.Rig
	t      *testing.T
	api    http.Handler
	tokens *access.Tokens
	bulk   *operate.Operations
}

func newClient(t *testing.T) *client {
	t.Helper()
	r := rig.New(t)
	tokens := access.NewTokens("", r.Pool)
	operations, err := operate.NewOperations(r.Store, r.Queue, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{Store: r.Store, Queue: r.Queue, Bulk: operations, Access: &access.Authenticator{Tokens: tokens}, PerSecond: 1000, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	described.read(t, api)
	return &client{r, t, api, tokens, operations}
}

// token makes a token for a canvas.
func (c *client) token(canvas eventqueue.CanvasID, verbs ...access.Verb) string {
	c.t.Helper()
	_, secret, err := c.tokens.Create(testenv.Context(c.t), audit.Actor{Name: "test", Via: "test"},
		access.NewToken{Name: "t", Grant: access.Grant{Canvases: []eventqueue.CanvasID{canvas}, Verbs: verbs}})
	if err != nil {
		c.t.Fatal(err)
	}
	return secret
}

// do makes a request and returns the status and the body.
func (c *client) do(token, method, path, body string, header ...string) (int, string) {
	c.t.Helper()
	r := httptest.NewRequestWithContext(testenv.Context(c.t), method, "http://api.example/v1"+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.api.ServeHTTP(w, r)
	if w.Code >= 400 && !strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem+json") {
		c.t.Errorf("%s %s: the error %d is no problem as of RFC 9457: %s", method, path, w.Code, w.Body)
	}
	if strings.HasPrefix(path, "/openapi") { // the document does not describe itself
		return w.Code, w.Body.String()
	}
	if why := described.refuses(r, body, w); why != "" {
		c.t.Errorf("%s %s: %d %s: is not as the OpenAPI document says: %s", method, path, w.Code, w.Body, why)
	}
	return w.Code, w.Body.String()
}

// wants makes a request and checks its answer.
func (c *client) wants(status int, text, token, method, path, body string, header ...string) string {
	c.t.Helper()
	got, answer := c.do(token, method, path, body, header...)
	if got != status || !strings.Contains(answer, text) {
		c.t.Errorf("%s %s: %d %s, want %d with %q", method, path, got, answer, status, text)
	}
	return answer
}

func (c *client) audited(action string) int {
	c.t.Helper()
	return rig.One[int](c.Rig, `SELECT count(*) FROM audit_log WHERE action = $1 AND via = 'api' AND actor = 'token:t'`, action)
}

// TestStaleEditIsRefused: an edit of content that has changed since is refused.
func TestStaleEditIsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.Emit(c.Copies(1)...)[0].String()
	all, blind := c.token(rig.Canvas, access.Verbs()...), c.token(rig.Canvas, access.Read, access.Operate)
	version := func(token string) string {
		var e struct{ Version string }
		if err := json.Unmarshal([]byte(c.wants(200, "", token, "GET", "/events/"+id, "")), &e); err != nil || e.Version == "" {
			t.Fatal(e, err)
		}
		return e.Version
	}
	read, hidden := version(all), version(blind)
	if read == hidden {
		t.Error("who may not read the value learns something of it")
	}
	c.wants(200, "changed", all, "PATCH", "/events/"+id, fmt.Sprintf(`{"value":"first","version":%q}`, read))
	c.wants(409, "changed since", all, "PATCH", "/events/"+id, fmt.Sprintf(`{"value":"second","version":%q}`, read))
	c.wants(200, `"value":"first"`, all, "GET", "/events/"+id, "")
	c.wants(200, "changed", blind, "PATCH", "/events/"+id, fmt.Sprintf(`{"attributes":{"a":"b"},"version":%q}`, hidden))
	c.wants(409, "changed since", blind, "PATCH", "/events/"+id, fmt.Sprintf(`{"attributes":{},"version":%q}`, hidden))

	// Of an event that has ended the same holds for a retry.
	c.wants(200, "changed", all, "POST", "/events/"+id+"/cancel", `{}`)
	c.wants(409, "changed since", all, "POST", "/events/"+id+"/retry", fmt.Sprintf(`{"version":%q}`, read))
	c.wants(200, "retried", all, "POST", "/events/"+id+"/retry", fmt.Sprintf(`{"version":%q}`, version(all)))
	c.wants(200, "changed", all, "POST", "/events/"+id+"/cancel", `{}`)
	c.wants(200, "retried", all, "POST", "/events/"+id+"/retry", "")
}

// TestAPI emits an event, reads it, and changes it in each way.
func TestAPI(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	body := func(more string) string {
		return fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":{"n": 12345678901234567890}%s}`, rig.Canvas, more)
	}
	c.wants(201, `{"ids":[1]}`, all, "POST", "/events", body(`,"delay_seconds":3600,"attributes":{"user":"ada"}`), "Idempotency-Key", "order-1")
	c.wants(200, `{"ids":[1],"repeat":true}`, all, "POST", "/events", body(`,"delay_seconds":3600,"attributes":{"user":"ada"}`), "Idempotency-Key", "order-1")
	c.wants(422, "of event 1, which has another", all, "POST", "/events", body(""), "Idempotency-Key", "order-1")
	c.wants(422, "of event 1, which has another", all, "POST", "/events", strings.Replace(body(`,"attributes":{"user":"ada"}`), "greet", "other", 1), "Idempotency-Key", "order-1")
	c.wants(422, "of event 1, which has another", all, "POST", "/events", strings.Replace(body(`,"attributes":{"user":"ada"}`), "67890", "67891", 1), "Idempotency-Key", "order-1")
	c.wants(201, `{"ids":[`, all, "POST", "/events/batch", fmt.Sprintf(`{"events":[%s,%s]}`, body(""), body("")))
	c.wants(200, `"state":"delayed","value":{"n":12345678901234567890}`, all, "GET", "/events/1", "")
	c.wants(200, `"user":"ada"`, all, "GET", "/events?canvas_id="+rig.Canvas.String()+"&state=delayed", "")
	c.wants(200, `"label"`, all, "GET", "/events/1/explain", "")
	c.wants(200, `{"items":[]}`, all, "GET", "/events/1/attempts", "")
	c.wants(200, `"next":1`, all, "GET", "/events?limit=1&canvas_id="+rig.Canvas.String(), "")
	c.wants(200, "changed", all, "PATCH", "/events/1", `{"value":"new"}`)
	c.wants(422, "", all, "PATCH", "/events/1", `{}`)
	c.wants(200, `"value":"new"`, all, "GET", "/events/1", "")
	c.wants(200, `"repeat":true`, all, "POST", "/events", body(`,"attributes":{"user":"ada"}`), "Idempotency-Key", "order-1")
	c.wants(200, "requeued", all, "POST", "/events/1/run", "")
	c.wants(200, `"state":"waiting"`, all, "GET", "/events/1", "")
	c.wants(200, "changed", all, "POST", "/events/1/cancel", `{"reason":"no longer"}`)
	c.wants(409, "cancelled", all, "POST", "/events/1/cancel", "")
	c.wants(200, `"label":"Cancelled","why":"It was cancelled `, all, "GET", "/events/1/explain", "")
	c.wants(200, `"state":"cancelled"`, all, "GET", "/history?canvas_id="+rig.Canvas.String(), "")
	c.wants(200, "retried", all, "POST", "/events/1/retry", "")
	c.wants(200, "changed", all, "DELETE", "/events/1", "")
	c.wants(404, "no such event", all, "GET", "/events/1", "")
	c.wants(422, "module", all, "POST", "/events", strings.Replace(body(""), "WORKER", "", 1))
	c.wants(422, "name", all, "POST", "/events/batch", fmt.Sprintf(`{"events":[%s]}`, strings.Replace(body(""), "greet", "", 1)))
	for action, want := range map[string]int{"emit": 2, "edit": 1, "run": 1, "cancel": 1, "retry": 1, "delete": 1} {
		if n := c.audited(action); n != want {
			t.Errorf("%d rows of %s, want %d", n, action, want)
		}
	}
	c.wants(200, `"action":"delete"`, all, "GET", "/audit?event=1", "")
	if rows := c.wants(200, `{"events":[1]}`, all, "GET", "/audit?before=3000000000", ""); strings.Contains(rows, `"events":[]`) {
		t.Errorf("a change of no event was audited: %s", rows)
	}
	handler := fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet"}`, rig.Canvas)
	for _, rule := range []string{"pause", "block"} {
		c.wants(200, `"changed":true`, all, "POST", "/handlers/"+rule, handler)
		c.wants(200, `"changed":false`, all, "POST", "/handlers/"+rule, handler)
		c.wants(200, `"type":"`+rule+`"`, all, "GET", "/rules?canvas_id="+rig.Canvas.String(), "")
		c.wants(200, `"changed":true`, all, "POST", "/handlers/un"+rule, handler)
		if c.audited(rule) != 1 || c.audited("un"+rule) != 1 {
			t.Errorf("%s has not its rows", rule)
		}
	}
}

// TestIDsBeyond32BitsAreRead in each filter and cursor.
func TestIDsBeyond32BitsAreRead(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all, canvas := c.token(rig.Canvas, access.Verbs()...), "canvas_id="+rig.Canvas.String()
	for _, id := range []string{"3000000000", "9223372036854775807"} {
		for _, path := range []string{"/audit?event=" + id, "/events?" + canvas + "&after=" + id, "/history?" + canvas + "&after=" + id} {
			c.wants(200, `{"items":[]}`, all, "GET", path, "")
		}
		c.wants(200, `"create_token"`, all, "GET", "/audit?before="+id, "")
		for _, path := range []string{"", "/attempts", "/explain", "/tree"} {
			c.wants(404, "no such event", all, "GET", "/events/"+id+path, "")
		}
		for _, path := range []string{"/run", "/cancel", "/retry"} {
			c.wants(404, "no such event", all, "POST", "/events/"+id+path, "{}")
		}
	}
}

// TestRepeatedEmitIsAuditedOnce: the audit log has no row of a request that emits nothing, and names only events that are new.
func TestRepeatedEmitIsAuditedOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	event := func(key string) string {
		return fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":1,"unique_key":%q}`, rig.Canvas, key)
	}
	c.wants(201, `{"ids":[1]}`, all, "POST", "/events", event("a"))
	for range 3 {
		c.wants(200, `{"ids":[1],"repeat":true}`, all, "POST", "/events", event("a"))
	}
	c.wants(201, `{"ids":[1,`, all, "POST", "/events/batch", `{"events":[`+event("a")+`,`+event("b")+`]}`)
	if n := c.audited("emit"); n != 2 {
		t.Errorf("%d rows of 2 changes", n)
	}
	if n := rig.One[int](c.Rig, `SELECT count(*) FROM audit_log WHERE target @> '{"events": [1]}'`); n != 1 {
		t.Errorf("%d rows name the first event", n)
	}
}

// TestIdempotencyKeyOutlastsItsEvent: a request that is repeated after the event has completed emits nothing, for a day, or as long as
// the request says.
func TestIdempotencyKeyOutlastsItsEvent(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	emit := func(status int, answer, key, more string) {
		t.Helper()
		c.wants(status, answer, all, "POST", "/events", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":1%s}`, rig.Canvas, more), "Idempotency-Key", key)
	}
	emit(201, `{"ids":[1]}`, "day", "")
	emit(201, `{"ids":[2]}`, "none", `,"unique_for_seconds":0`)
	emit(201, `{"ids":[3]}`, "minute", `,"unique_key":"minute","unique_for_seconds":60`)
	if got := rig.One[string](c.Rig, `SELECT string_agg(unique_seconds::text, ' ' ORDER BY id) FROM events_v2`); got != "86400 0 60" {
		t.Errorf("the keys hold for %s s after the end", got)
	}
	c.Handle(func(context.Context, *eventqueue.Run) error { return nil }, eventqueue.Policy{})
	c.RunToItsBound(worker.Config{MaxEvents: 3})
	if n := c.Waiting(); n != 0 {
		t.Fatalf("%d events have not ended", n)
	}
	emit(200, `{"ids":[1],"repeat":true}`, "day", "")
	emit(201, `{"ids":[`, "none", "")
	emit(200, `{"ids":[3],"repeat":true}`, "minute", "")
}

// TestUniqueModesAreThoseOfTheQueue: what is invalid writes nothing, replace gives what waits the newest value, and until_start
// lets another event in when the first one runs.
func TestUniqueModesAreThoseOfTheQueue(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all := c.token(rig.Canvas, access.Verbs()...)
	event := func(value, more string) string {
		return fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":%s,%s}`, rig.Canvas, value, more)
	}
	for more, want := range map[string]string{
		`"unique_key":"k","unique_mode":"sometimes"`:                             "until_end, until_start, replace",
		`"unique_key":"k","unique_mode":""`:                                      "until_end, until_start, replace",
		`"unique_mode":"replace"`:                                                "unique_key: is missing",
		`"unique_for_seconds":60`:                                                "unique_key: is missing",
		`"unique_key":"k","unique_mode":"until_start","unique_for_seconds":60`:   "unique_for_seconds: does not go with the mode until_start",
		`"unique_key":"k","max_wait_seconds":60`:                                 "max_wait_seconds: goes with the mode replace only",
		`"unique_key":"k","unique_mode":"replace","max_wait_seconds":-1`:         "max_wait_seconds",
		`"unique_key":"k","unique_for_seconds":4000000000`:                       "unique_for_seconds",
		`"unique_key":"k","unique_mode":"replace","max_wait_seconds":4000000001`: "max_wait_seconds",
	} {
		c.wants(422, want, all, "POST", "/events", event("1", more))
		c.wants(422, want, all, "POST", "/events/batch", `{"events":[`+event("0", `"unique_key":"other"`)+`,`+event("1", more)+`]}`)
	}
	c.wants(422, "Idempotency-Key goes with the unique_mode until_end only", all, "POST", "/events", event("1", `"unique_mode":"replace"`), "Idempotency-Key", "k")
	if n := c.Waiting(); n != 0 {
		t.Fatalf("%d events were written", n)
	}

	const replace = `"unique_key":"r","unique_mode":"replace","delay_seconds":600,"max_wait_seconds":60`
	c.wants(201, `{"ids":[1]}`, all, "POST", "/events", event("1", replace))
	c.wants(200, `{"ids":[1],"repeat":true}`, all, "POST", "/events", event("2", replace))
	if got := rig.One[string](c.Rig, `SELECT value || ' ' || (delay_until - enqueued_at) FROM events_v2`); got != "2 00:01:00" {
		t.Errorf("the event has the value and delay %s", got)
	}
	c.wants(422, "cannot replace it", all, "POST", "/events", strings.Replace(event("3", replace), "greet", "other", 1))
	c.wants(200, `"replaced":[1]`, all, "GET", "/audit?event=1", "")

	const start = `"unique_key":"s","unique_mode":"until_start"`
	c.wants(201, `{"ids":[2]}`, all, "POST", "/events", event("1", start))
	c.wants(200, `{"ids":[2],"repeat":true}`, all, "POST", "/events", event("2", start))
	c.Claims(2)
	c.wants(201, `{"ids":[3]}`, all, "POST", "/events", event("3", start))

	const end = `"unique_key":"e","unique_mode":"until_end","unique_for_seconds":60`
	c.wants(201, `{"ids":[4,4]}`, all, "POST", "/events/batch", `{"events":[`+event("1", end)+`,`+event("2", end)+`]}`)
	if got := rig.One[int](c.Rig, `SELECT unique_seconds FROM events_v2 WHERE id = 4`); got != 60 {
		t.Errorf("the key holds for %d s after the end", got)
	}
}

// TestInvalidRequestsAreRefused has whoever lacks a verb change and see nothing, and another canvas' event be one that
// does not exist.
func TestInvalidRequestsAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.Emit(c.Event(`{"secret":1}`))[0]
	event := "/events/" + id.String()
	handler := fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet"}`, rig.Canvas)
	elsewhere, reader := c.token(another, access.Verbs()...), c.token(rig.Canvas, access.Read)
	user := c.token(rig.Canvas, access.Read, access.Operate)
	before := c.Row(id)
	for _, o := range []struct{ method, path, body string }{
		{"GET", event, ""}, {"GET", event + "/attempts", ""}, {"GET", event + "/explain", ""}, {"DELETE", event, ""}, {"PATCH", event, `{"value":2}`},
		{"POST", event + "/cancel", `{}`}, {"POST", event + "/run", ""}, {"POST", event + "/retry", ""},
	} {
		theirs := c.wants(404, "no such event", elsewhere, o.method, o.path, o.body)
		missing := c.wants(404, "no such event", elsewhere, o.method, strings.Replace(o.path, event, "/events/987654", 1), o.body)
		if theirs != missing {
			t.Errorf("%s %s: another canvas' event is answered with %s, and one that does not exist with %s", o.method, o.path, theirs, missing)
		}
		c.wants(401, "", "", o.method, o.path, o.body)
		if o.method != "GET" {
			c.wants(403, "operate", reader, o.method, o.path, o.body)
		}
	}
	for _, o := range []struct{ method, path string }{{"PATCH", event}, {"POST", event + "/retry"}} {
		c.wants(403, "operate", reader, o.method, o.path, `{"version":"outdated"}`)
	}
	if answer := c.wants(200, `"value_bytes":12`, reader, "GET", event, ""); strings.Contains(answer, "secret") {
		t.Errorf("who may not read values sees %s", answer)
	}
	c.wants(403, "emit", user, "POST", "/events", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":1}`, rig.Canvas))
	c.wants(403, "read", elsewhere, "GET", "/events?canvas_id="+rig.Canvas.String(), "")
	c.wants(403, "read", elsewhere, "GET", "/history?canvas_id="+rig.Canvas.String(), "")
	c.wants(403, "read", elsewhere, "GET", "/rules?canvas_id="+rig.Canvas.String(), "")
	c.wants(403, "operate", reader, "POST", "/handlers/pause", handler)
	c.wants(403, "administer", user, "POST", "/handlers/block", handler)
	c.wants(403, "administer", user, "POST", "/handlers/unblock", handler)
	if answer := c.wants(200, "", elsewhere, "GET", "/audit", ""); strings.Contains(answer, rig.Canvas.String()) {
		t.Errorf("another canvas' audit log is seen: %s", answer)
	}
	emitter := c.token(rig.Canvas, access.Read, access.Operate, access.Emit)
	for _, o := range []struct{ method, path, body string }{
		{"GET", "/events", ""}, {"GET", "/events?canvas_id=x", ""}, {"GET", "/events/0", ""}, {"GET", "/events/x", ""}, {"POST", "/events", `{`}, {"POST", "/events", `{}`},
		{"POST", "/events/batch", `{"events":[]}`}, {"GET", event + "?unknown=1", ""}, {"PATCH", event, `{"delay_seconds":-1}`},
	} {
		if status, answer := c.do(emitter, o.method, o.path, o.body); status != 422 && status != 400 {
			t.Errorf("%s %s %s: %d %s", o.method, o.path, o.body, status, answer)
		}
	}
	c.wants(413, "", c.token(rig.Canvas, access.Emit), "POST", "/events", `{"value":"`+strings.Repeat("x", 9<<20)+`"}`)
	if after := c.Row(id); after != before {
		t.Errorf("the event was %s and is %s", before, after)
	}
	if n := rig.One[int](c.Rig, `SELECT count(*) FROM audit_log WHERE via = 'api'`); n != 0 {
		t.Errorf("%d changes were audited", n)
	}
}

// TestFrequentRequestsWait has an identity that asks too often wait, and an address that has no valid token.
func TestFrequentRequestsWait(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	api, err := httpapi.New(httpapi.Config{Store: c.Store, Queue: c.Queue, Bulk: c.bulk, Access: &access.Authenticator{Tokens: c.tokens}, PerSecond: 1.0 / 3600})
	if err != nil {
		t.Fatal(err)
	}
	c.api = api
	token := c.token(rig.Canvas, access.Read)
	c.wants(404, "", token, "GET", "/events/1", "")
	c.wants(429, "too many", token, "GET", "/events/1", "")
	c.wants(404, "", c.token(rig.Canvas, access.Read), "GET", "/events/1", "")
	for range 1000 {
		if status, _ := c.do("wrong", "GET", "/events/1", ""); status == 429 {
			return
		}
	}
	t.Error("a thousand wrong tokens are let through to the database")
}

// TestWrongTokensDelayNoOtherClient who has been let in before, also at the same address, which may be that of a proxy.
func TestWrongTokensDelayNoOtherClient(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	token := c.token(rig.Canvas, access.Read)
	c.wants(404, "", token, "GET", "/events/1", "")
	refused := 0
	for range 1000 {
		if status, _ := c.do("wrong", "GET", "/events/1", ""); status != 429 {
			continue
		}
		c.wants(404, "", token, "GET", "/events/1", "")
		if refused++; refused == 10 {
			return
		}
	}
	t.Error("wrong tokens are not refused")
}

// TestOpenAPI holds the document to its golden file.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	_, document := c.do("", "GET", "/openapi.json", "")
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(document), "", "  "); err != nil {
		t.Fatal(err)
	}
	const path = "testdata/openapi.json"
	if *update {
		if err := os.WriteFile(path, indented.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(indented.Bytes(), want) {
		t.Error("the OpenAPI document is not testdata/openapi.json: go test ./httpapi -run OpenAPI -update rewrites it")
	}
}

// TestRequestsWithoutAnOperationAreProblems: paths that do not exist, methods that a path does not take, and both without a token.
func TestRequestsWithoutAnOperationAreProblems(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, request := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nope", 404, ""}, {"POST", "/events/1/nope", 404, ""},
		{"PUT", "/events", 405, "GET, HEAD, POST"}, {"POST", "/workers", 405, "GET, HEAD"},
	} {
		w := httptest.NewRecorder()
		c.api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), request.method, "http://api.example/v1"+request.path, nil))
		var problem struct {
			Status int
			Title  string
			Detail string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || w.Code != request.status || problem.Status != request.status || problem.Title == "" || problem.Detail == "" ||
			w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Allow") != request.allow || w.Header().Get("Location") != "" {
			t.Errorf("%s %s: %d %v %s, %v", request.method, request.path, w.Code, w.Header(), w.Body, err)
		}
	}
}
