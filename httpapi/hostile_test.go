package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/test/testenv"
)

// What a refused request may cost: its answer, and the memory that is allocated for it.
const (
	maxRefusalBytes  = 64 << 10
	maxErrors        = 20
	allocatedPerByte = 12
	allocatedAnyway  = 512 << 10
)

// schema is the document's schema of a body.
type schema struct {
	Ref           string `json:"$ref"`
	Type          any
	Properties    map[string]*schema
	Additional    json.RawMessage `json:"additionalProperties"`
	Items         *schema
	MaxItems      int
	MaxProperties int
	MinLength     int
	Format        string
	Enum          []any
	Required      []string
}

// route is an operation that takes a body.
type route struct {
	method, path string
	body         *schema
}

// routes returns those of the document.
func (c *client) routes() (found []route, resolve func(*schema) *schema) {
	c.t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema *schema }
			}
		}
		Components struct{ Schemas map[string]*schema }
	}
	if _, text := c.do("", "GET", "/openapi.json", ""); json.Unmarshal([]byte(text), &document) != nil {
		c.t.Fatal("the document cannot be read")
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for method, operation := range document.Paths[path] {
			if content, takes := operation.RequestBody.Content["application/json"]; takes {
				found = append(found, route{strings.ToUpper(method), strings.ReplaceAll(strings.TrimPrefix(path, "/v1"), "{id}", "1"), content.Schema})
			}
		}
	}
	if len(found) < 15 {
		c.t.Fatalf("only %d routes take a body", len(found))
	}
	return found, func(s *schema) *schema {
		for s.Ref != "" {
			s = document.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
		}
		return s
	}
}

func times(n int, text string) string { return strings.Repeat(text, n) }

func list(n int, item string) string { return "[" + times(n-1, item+",") + item + "]" }

// wrong returns values that most properties may not have.
func wrong() []string {
	return []string{`null`, `[]`, `{}`, `true`, `-1`, `1e999`, `1` + times(30_000, "0"), `"` + times(30_000, "x") + `"`, `"` + times(10_000, `\u0000`) + `"`, `"` + times(10_000, `\ud800`) + `"`,
		`"` + times(10_000, `<`) + `"`, `"` + times(10_000, "\u2028") + `"`, list(10_000, `{}`), list(10_000, `null`), list(10_000, `"x"`), list(10_000, `[]`),
		times(5_000, `[`) + times(5_000, `]`), times(5_000, `{"a":`) + `1` + times(5_000, `}`), unknown(5_000, "k"), unknown(50, times(500, "k.[")), unknown(20, times(500, `\u0001`))}
}

// unknown is an object with many keys.
func unknown(n int, key string) string {
	var pairs []string
	for i := range n {
		pairs = append(pairs, `"`+key+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))+`":1`)
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// hostile returns bodies that are not what a schema says, and some that are not JSON.
func hostile(s *schema, resolve func(*schema) *schema) []string {
	bodies := append(wrong(), `{`, `{"a"`, "{\"a\":\"\xff\"}", times(60_000, "["), times(60_000, `{"":`), times(30_000, "\x00"))
	var inside func(s *schema, before, after string)
	inside = func(s *schema, before, after string) {
		s = resolve(s)
		for name, property := range s.Properties {
			for _, value := range wrong() {
				bodies = append(bodies, before+`{"`+name+`":`+value+`}`+after)
			}
			bodies = append(bodies, before+`{`+times(5_000, `"`+name+`":{},`)+`"`+name+`":[]}`+after)
			inside(property, before+`{"`+name+`":`, `}`+after)
		}
		if s.Items != nil {
			inside(s.Items, before+`[`, `]`+after)
			bodies = append(bodies, before+list(100_000, `{}`)+after, before+list(1_000, `{}`)+after)
		}
	}
	inside(s, "", "")
	return bodies
}

// send makes a request without a look at the document, which takes its time for large bodies.
func (c *client) send(token, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(testenv.Context(c.t), method, "http://api.example/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	c.api.ServeHTTP(w, r)
	return w
}

// refused checks that an answer refuses a request, and is small.
func (c *client) refused(what string, w *httptest.ResponseRecorder) {
	c.t.Helper()
	var problem struct {
		Errors []struct {
			Message, Location string
			Value             any
		}
	}
	if w.Code < 400 || w.Code >= 500 || w.Body.Len() > maxRefusalBytes || json.Unmarshal(w.Body.Bytes(), &problem) != nil || len(problem.Errors) > maxErrors {
		c.t.Errorf("%s: %d with %d bytes and %d errors: %.200s", what, w.Code, w.Body.Len(), len(problem.Errors), w.Body)
	}
	for _, e := range problem.Errors {
		if text, is := e.Value.(string); is && len(text) > 100 {
			c.t.Errorf("%s: an error quotes %d bytes", what, len(text))
		}
	}
}

// TestHostileBodiesUseLittleMemory has each operation that takes a body refuse bodies made to be expensive, with a small answer and
// with memory in proportion to the body. It is not parallel, so that only one request allocates.
//
//nolint:paralleltest // It measures what is allocated.
func TestHostileBodiesUseLittleMemory(t *testing.T) {
	c := newClient(t)
	root := c.root(access.Verbs()...)
	routes, resolve := c.routes()
	worst := 0.0
	for _, r := range routes {
		for _, body := range hostile(r.body, resolve) {
			what := r.method + " " + r.path + " " + body[:min(len(body), 60)]
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w := c.send(root, r.method, r.path, body)
			runtime.ReadMemStats(&after)
			c.refused(what, w)
			allocated := after.TotalAlloc - before.TotalAlloc
			worst = max(worst, (float64(allocated)-allocatedAnyway)/float64(len(body)))
			if allocated > uint64(allocatedAnyway+allocatedPerByte*len(body)) {
				t.Errorf("%s: %d bytes are allocated for a body of %d", what, allocated, len(body))
			}
		}
	}
	t.Logf("at most %.1f bytes for a byte of a body", worst)
}

// TestRequestListsAreBounded: what a body may have any number of, the document bounds, and so the check of bodies.
func TestRequestListsAreBounded(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	routes, resolve := c.routes()
	var look func(where string, s *schema)
	look = func(where string, s *schema) {
		s = resolve(s)
		for name, property := range s.Properties {
			look(where+"."+name, property)
		}
		if s.Items != nil {
			look(where+"[]", s.Items)
			if s.MaxItems == 0 {
				t.Errorf("%s has no maxItems", where)
			}
		}
		if strings.HasPrefix(string(s.Additional), "{") && s.MaxProperties == 0 {
			t.Errorf("%s has no maxProperties", where)
		}
	}
	for _, r := range routes {
		look(r.method+" "+r.path, r.body)
	}
}

// TestHostileQueriesUseLittleMemory: as bodies, so queries.
func TestHostileQueriesUseLittleMemory(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	root := c.root(access.Verbs()...)
	for _, query := range []string{"?" + times(300_000, "a&"), "?" + times(150, "unknown"+times(200, "x")+"=1&"), "?canvas_id=" + times(60_000, "x"), "?attribute=" + times(60_000, "%01"),
		"?canvas_id=6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11" + times(150, "&attribute=x"), "?limit=" + times(60_000, "9")} {
		c.refused("GET /events"+query[:min(len(query), 60)], c.send(root, http.MethodGet, "/events"+query, ""))
	}
}
