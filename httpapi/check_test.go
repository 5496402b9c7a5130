package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"eventsv2/internal/view"
)

// bodyTypes are types of bodies, each with a text that is right.
func bodyTypes() map[reflect.Type]string {
	const canvas = `"canvas_id":"6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11"`
	const event = `{` + canvas + `,"module":"M","name":"n","value":{"a":[1,"]"]},"attributes":{"a":"b"},"delay_seconds":1.5,"delay_until":"2026-11-27T07:00:00Z"}`
	return map[reflect.Type]string{
		reflect.TypeFor[struct {
			Events []newEvent `json:"events" minItems:"1" maxItems:"3" nullable:"false"`
		}](): `{"events":[` + event + `, ` + event + `]}`,
		reflect.TypeFor[bulkBody]():              `{"verb":"edit","filter":{` + canvas + `,"state":"failed","attributes":{"a":"b"},"older_than_seconds":5},"edit":{"value":[{}],"attributes":{},"delay_seconds":null}}`,
		reflect.TypeFor[newToken]():              ` {"name":"\u0061\"\\","verbs":["read","emit"],"canvases":["a"],"expires_in_seconds":3600} `,
		reflect.TypeFor[NewCron]():               `{` + canvas + `,"name":"n","schedule":"@daily","missed":"all","skip_if_paused":true}`,
		reflect.TypeFor[view.ConcurrencyLimit](): `{` + canvas + `,"max_running":3}`,
		reflect.TypeFor[ruleBody]():              `{` + canvas + `,"module":"M","name":"n","prefix":true,"modifier":"x","reason":"r","until":"2026-11-27T07:00:00Z"}`,
	}
}

// mutated changes one thing in a decoded text.
func mutated(random *rand.Rand, value any) any {
	values := []any{nil, true, -1.0, 2.5, 1e12, "", "x", strings.Repeat("é", 300), []any{}, []any{nil}, map[string]any{}, map[string]any{"a": 1.0}}
	if random.IntN(3) == 0 {
		return values[random.IntN(len(values))]
	}
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		if len(keys) == 0 || random.IntN(5) == 0 {
			v["unknown"] = values[random.IntN(len(values))]
			return v
		}
		slices.Sort(keys)
		key := keys[random.IntN(len(keys))]
		of := v[key]
		switch random.IntN(4) {
		case 0:
			delete(v, key)
		case 1:
			delete(v, key)
			v[strings.ToUpper(key)] = of
		default:
			v[key] = mutated(random, of)
		}
	case []any:
		if len(v) == 0 || random.IntN(4) == 0 {
			return append(v, values[random.IntN(len(values))])
		}
		i := random.IntN(len(v))
		v[i] = mutated(random, v[i])
	default:
		return values[random.IntN(len(values))]
	}
	return value
}

func errorsOf(errs []error) []string {
	texts := []string{}
	for _, err := range errs {
		var e *huma.ErrorDetail
		if !errors.As(err, &e) {
			panic(err)
		}
		texts = append(texts, e.Location+": "+e.Message)
	}
	slices.Sort(texts)
	return texts
}

// TestCheckFindsTheMistakesThatHumaFinds in texts that are wrong in a few places, and in none that is right.
func TestCheckFindsTheMistakesThatHumaFinds(t *testing.T) {
	t.Parallel()
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	for of, right := range bodyTypes() {
		schema := huma.SchemaFromType(registry, of)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 3000 {
			text := []byte(right)
			if i > 0 {
				var value any
				if err := json.Unmarshal(text, &value); err != nil {
					t.Fatal(err)
				}
				for range 1 + random.IntN(3) {
					value = mutated(random, value)
				}
				text, _ = json.Marshal(value)
			}
			var value any
			if err := json.Unmarshal(text, &value); err != nil {
				t.Fatal(err)
			}
			res := &huma.ValidateResult{}
			huma.Validate(registry, schema, huma.NewPathBuffer([]byte("body"), len("body")), huma.ModeWriteToServer, value, res)
			want := errorsOf(res.Errors)
			if i == 0 && len(want) > 0 {
				t.Fatalf("%s: %v", right, want)
			}
			got := errorsOf(check(registry, schema, text))
			if slices.ContainsFunc(want, func(e string) bool { return strings.Contains(e, "array length <=") }) {
				continue // huma goes on to the items
			}
			if difference := cmp.Diff(want, got); difference != "" {
				t.Fatalf("%s: (-huma +check)\n%s", text, difference)
			}
		}
	}
}

// TestCheckRefusesMoreThanHuma: what decoding or the database would stumble over.
func TestCheckRefusesMoreThanHuma(t *testing.T) {
	t.Parallel()
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schema := huma.SchemaFromType(registry, reflect.TypeFor[editBody]())
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint("k", i)] = "v"
	}
	text, err := json.Marshal(editBody{Attributes: many})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string][]string{
		`{"value":1,"Value":2}`:           {"body.value: the property is there twice"},
		`{"attributes":{"a":"\u0000"}}`:   {"body.attributes.a: has the character NUL, which no text may have"},
		`{"attributes":{"a\u0000":"b"}}`:  {"body.attributes.a\x00: has the character NUL, which no text may have"},
		`{"delay_seconds":1e999}`:         {"body.delay_seconds: expected number"},
		`{"value":"\u0000","value2":"a"}`: {"body.value2: unexpected property"},
		string(text):                      {"body.attributes: expected object with at most 16 properties"},
	} {
		if difference := cmp.Diff(want, errorsOf(check(registry, schema, []byte(body)))); difference != "" {
			t.Errorf("%s: (-want +got)\n%s", body, difference)
		}
	}
}
