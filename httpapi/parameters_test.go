package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/httpapi"
	"eventsv2/test/rig"
)

// TestEmptyFieldsAreRefused: an empty text in a body or a query does not stand for an absent one, which may be the whole canvas.
func TestEmptyFieldsAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	all, canvas := c.token(rig.Canvas, access.Verbs()...), rig.Canvas.String()
	c.wants(200, `"changed":true`, all, "PUT", "/limits/concurrency", fmt.Sprintf(`{"canvas_id":%q,"max_running":7}`, canvas))
	c.wants(200, `"changed":true`, all, "PUT", "/limits/rate", fmt.Sprintf(`{"canvas_id":%q,"per_day":7}`, canvas))
	for _, r := range []struct{ method, path, body, location string }{
		{"PUT", "/limits/concurrency", `{"canvas_id":%q,"max_running":1,"ordering_key":""}`, "body.ordering_key"},
		{"PUT", "/limits/concurrency", `{"canvas_id":%q,"max_running":1,"module":"","name":""}`, "body.module"},
		{"PUT", "/limits/rate", `{"canvas_id":%q,"per_day":1,"module":"","name":""}`, "body.name"},
		{"POST", "/handlers/pause", `{"canvas_id":%q,"module":"WORKER","name":"a","modifier":""}`, "body.modifier"},
		{"POST", "/bulk", `{"verb":"delete","filter":{"canvas_id":%q,"name":""}}`, "body.filter.name"},
		{"POST", "/bulk", `{"verb":"retry","filter":{"canvas_id":%q,"error_group":""}}`, "body.filter.error_group"},
		{"POST", "/bulk", `{"verb":"retry","filter":{"canvas_id":%q,"newer_than_seconds":0}}`, "body.filter.newer_than_seconds"},
		{"POST", "/events", `{"canvas_id":%q,"module":"WORKER","name":"a","value":1,"unique_key":""}`, "body.unique_key"},
		{"POST", "/events/batch", `{"events":[{"canvas_id":%q,"module":"WORKER","name":"a","value":1,"ordering_key":""}]}`, "body.events[0].ordering_key"},
	} {
		c.wants(422, `"location":"`+r.location+`"`, all, r.method, r.path, fmt.Sprintf(r.body, canvas))
	}
	c.wants(400, `"location":"query.ordering_key"`, all, "DELETE", "/limits/concurrency?canvas_id="+canvas+"&ordering_key=", "")
	c.wants(400, `"location":"query.module"`, all, "DELETE", "/limits/rate?canvas_id="+canvas+"&module=&name=", "")
	event := fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"a","value":1}`, canvas)
	c.wants(400, `"location":"header.Idempotency-Key"`, all, "POST", "/events", event, "Idempotency-Key", "")
	c.wants(200, `"max_running":7`, all, "GET", "/limits/concurrency?canvas_id="+canvas, "")
	c.wants(200, `"per_day":7`, all, "GET", "/limits/rate?canvas_id="+canvas, "")
	c.wants(200, `{"items":[]}`, all, "GET", "/bulk", "")
}

// TestParametersAreGivenOnce has each operation refuse each of its parameters that is empty, and each that is there twice where one is
// meant.
func TestParametersAreGivenOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.with(func(config *httpapi.Config) { config.PerSecond = 1e6 })
	root := c.root(access.Verbs()...)
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Schema   schema
			}
		}
	}
	if _, text := c.do("", "GET", "/openapi.json", ""); json.Unmarshal([]byte(text), &document) != nil {
		t.Fatal("the document cannot be read")
	}
	tried := 0
	for path, methods := range document.Paths {
		target := strings.ReplaceAll(strings.TrimPrefix(path, "/v1"), "{id}", "1")
		for method, operation := range methods {
			for _, p := range operation.Parameters {
				if p.In != "query" {
					continue
				}
				tried++
				if w := c.send(root, strings.ToUpper(method), target+"?"+p.Name+"=", ""); w.Code != http.StatusBadRequest {
					t.Errorf("%s %s with an empty %s: %d %s", method, target, p.Name, w.Code, w.Body)
				}
				if w := c.send(root, strings.ToUpper(method), target+"?"+p.Name+"=1&"+p.Name+"=1", ""); p.Schema.single() && (w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "query."+p.Name)) {
					t.Errorf("%s %s with %s twice: %d %s", method, target, p.Name, w.Code, w.Body)
				}
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d were tried", tried)
	}
}

// single reports whether a schema is not that of a list.
func (s schema) single() bool {
	types, several := s.Type.([]any)
	return s.Type != "array" && (!several || !slices.Contains(types, any("array")))
}

// TestTwoIdempotencyKeysAreRefused, of which one would count.
func TestTwoIdempotencyKeysAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	event := fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"a","value":1}`, rig.Canvas)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.example/v1/events", strings.NewReader(event))
	r.Header = http.Header{"Authorization": {"Bearer " + c.token(rig.Canvas, access.Emit)}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a", "b"}}
	w := httptest.NewRecorder()
	c.api.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "header.Idempotency-Key") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestOptionalTextsAreNotEmpty: the document lets no optional text of a request be empty, except where that means nothing else
// than an absent one does.
func TestOptionalTextsAreNotEmpty(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	routes, resolve := c.routes()
	var walk func(where string, s *schema)
	walk = func(where string, s *schema) {
		s = resolve(s)
		for name, property := range s.Properties {
			walk(where+"."+name, property)
			p := resolve(property)
			harmless := name == "reason" || name == "modifier" && strings.HasPrefix(where, "POST /events") || name == "time_zone"
			if p.Type == "string" && !slices.Contains(s.Required, name) && p.MinLength == 0 && len(p.Enum) == 0 && p.Format == "" && !harmless {
				t.Errorf("%s.%s may be empty", where, name)
			}
		}
		if s.Items != nil {
			walk(where+"[]", s.Items)
		}
	}
	for _, r := range routes {
		walk(r.method+" "+r.path, r.body)
	}
}
