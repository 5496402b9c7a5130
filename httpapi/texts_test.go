package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/access"
	"eventsv2/httpapi"
	"eventsv2/test/rig"
)

// TestUnusableTextsAreRefused: NUL and what is not UTF-8, in paths, queries, headers and bodies, with no line of an error.
func TestUnusableTextsAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	core, logged := observer.New(zap.WarnLevel)
	c.with(func(config *httpapi.Config) { config.Logger = zap.New(core) })
	root := c.root(access.Verbs()...)
	canvas := "canvas_id=" + rig.Canvas.String()
	for _, text := range []string{"%00", "a%00b", "%ff", "%c3", "%ed%a0%80"} {
		for _, path := range []string{"/events?" + canvas + "&module=", "/events?" + canvas + "&name=", "/events?" + canvas + "&attribute=a=", "/history?" + canvas + "&attribute=", "/audit?actor=",
			"/crons/next?" + canvas + "&name=", "/stats?" + canvas + "&after=", "/stats?" + canvas + "&name=", "/events/"} {
			c.wants(400, "", root, "GET", path+text, "")
		}
		c.wants(400, "", root, "DELETE", "/limits/concurrency?"+canvas+"&ordering_key="+text, "")
		c.wants(400, "", root, "DELETE", "/crons?"+canvas+"&name="+text, "")
	}
	event := fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":1}`, rig.Canvas)
	c.wants(400, "Idempotency-Key", root, "POST", "/events", event, "Idempotency-Key", "a\xffb")
	id := c.Emit(c.Copies(1)...)[0].String()
	c.wants(422, "body.reason", root, "POST", "/events/"+id+"/cancel", `{"reason":"a\u0000"}`)
	c.wants(422, "body.filter.attributes.a", root, "POST", "/bulk", fmt.Sprintf(`{"verb":"cancel","filter":{"canvas_id":%q,"attributes":{"a":"\u0000"}}}`, rig.Canvas))
	c.wants(422, "", root, "POST", "/events", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":"\u0000"}`, rig.Canvas))
	c.wants(400, "not UTF-8", root, "POST", "/events/"+id+"/cancel", "{\"reason\":\"a\xff\"}")
	if lines := logged.All(); len(lines) > 0 {
		t.Errorf("logged: %v", lines)
	}
}

// TestHostileParametersAreNoErrors of the server, whatever parameter of whatever operation has which of them.
func TestHostileParametersAreNoErrors(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	core, logged := observer.New(zap.WarnLevel)
	c.with(func(config *httpapi.Config) { config.Logger, config.PerSecond = zap.New(core), 1e6 })
	root := c.root(access.Verbs()...)
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if _, text := c.do("", "GET", "/openapi.json", ""); json.Unmarshal([]byte(text), &document) != nil {
		t.Fatal("the document cannot be read")
	}
	hostile := []string{"", "0", "-1", "1", "3000000000", "9223372036854775807", "9223372036854775808", "1e9", "NaN", "true", "'", `"\`, "%", "_", "a=b", "=", "a=", "a=\u202e", "\x00", "a=\x00", "\xff",
		"infinity", "9999-12-31T23:59:59Z", "00000000-0000-0000-0000-000000000000", "6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11", "W10", "WyJhIiwiXHUwMDAwIl0", "WyJhIiwiYiJd", strings.Repeat("x", 255), strings.Repeat("é", 3000)}
	tried := 0
	for path, methods := range document.Paths {
		for method, operation := range methods {
			for _, p := range operation.Parameters {
				for _, text := range hostile {
					target, query := strings.TrimPrefix(path, "/v1"), url.Values{"canvas_id": {rig.Canvas.String()}, "name": {"n"}}
					if p.In == "path" {
						target = strings.ReplaceAll(target, "{"+p.Name+"}", url.PathEscape(text))
					}
					if p.In == "query" {
						query.Set(p.Name, text)
					}
					for name := range query {
						if !strings.Contains(fmt.Sprint(operation.Parameters), "{"+name+" query}") {
							query.Del(name)
						}
					}
					target = strings.ReplaceAll(target, "{id}", "1") + "?" + query.Encode()
					if w := c.send(root, strings.ToUpper(method), target, ""); w.Code >= http.StatusInternalServerError {
						t.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
					}
					tried++
				}
			}
		}
	}
	if tried < 1500 {
		t.Errorf("only %d were tried", tried)
	}
	for _, line := range logged.All() {
		t.Errorf("logged: %s %v", line.Message, line.ContextMap())
	}
}
