package hostile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"eventsv2/eventqueue"
)

// schema is the schema of a value in the API's document.
type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Format     string
	Enum       []any
	Minimum    *float64
	Properties map[string]*schema
	Required   []string
	Items      *schema
}

// kind is the type of a value, or "" for any.
func (s *schema) kind() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if one != "null" {
				return fmt.Sprint(one)
			}
		}
	}
	return ""
}

// filler writes values that a schema describes.
type filler struct {
	schemas map[string]*schema
	canvas  eventqueue.CanvasID
	all     bool              // also properties that may be absent
	spoilt  map[string]string // what is written in place of each value of a kind
}

func (f filler) value(s *schema) string {
	for s.Ref != "" {
		s = f.schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	if text, is := f.spoilt[s.kind()]; is {
		return text
	}
	if len(s.Enum) > 0 {
		text, _ := json.Marshal(s.Enum[0])
		return string(text)
	}
	switch s.kind() {
	case "object":
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if f.all || slices.Contains(s.Required, name) {
				parts = append(parts, fmt.Sprintf("%q:%s", name, f.value(s.Properties[name])))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	case "array":
		return "[" + f.value(s.Items) + "]"
	case "integer", "number":
		if s.Minimum != nil {
			return fmt.Sprint(*s.Minimum)
		}
		return "1"
	case "boolean":
		return "true"
	case "string":
		switch s.Format {
		case "uuid":
			return `"` + f.canvas.String() + `"`
		case "date-time":
			return `"2100-01-01T00:00:00Z"`
		}
		return `"x"`
	default:
		return `{"n":1}`
	}
}

func times(n int, text string) string { return strings.Repeat(text, n) }

func list(n int, item string) string { return "[" + times(n-1, item+",") + item + "]" }

// manyKeys is an object with keys that no operation knows.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"unknown%d":1`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// bodies returns requests of the API with a schema: right ones for each canvas, and hostile ones.
func (f filler) bodies(s *schema) (all []string) {
	for _, canvas := range []eventqueue.CanvasID{canvasA, canvasB} {
		f.canvas, f.all = canvas, false
		all = append(all, f.value(s))
		f.all = true
		all = append(all, f.value(s))
	}
	for _, spoilt := range []map[string]string{
		{"array": list(50_000, "{}")},
		{"array": list(50_000, "null")},
		{"array": list(20_000, `"x"`)},
		{"integer": "1" + times(30_000, "0"), "number": "1e999", "": "1" + times(30_000, "0")},
		{"integer": "-1", "number": "-1", "boolean": "7", "string": "7"},
		{"": times(20_000, `{"a":`) + "1" + times(20_000, "}"), "string": times(5_000, "[") + times(5_000, "]")},
		{"string": `"` + times(200_000, "x") + `"`, "": `"` + times(600_000, "x") + `"`},
		{"string": `"a\u0000b"`, "": `"\u0000"`},
		{"string": "\"\xff\xfe\""},
		{"string": `"\ud800"`, "": `"\ud800"`},
		{"string": `"` + times(20, `\u202e\u001b[2J<script>'\"`) + `"`},
	} {
		f.spoilt = spoilt
		all = append(all, f.value(s))
	}
	right := filler{schemas: f.schemas, canvas: canvasA}.value(s)
	twice := strings.TrimSuffix(right, "}") + fmt.Sprintf(`,"canvas_id":%q}`, canvasB)
	return append(all, twice, manyKeys(5_000), list(50_000, "{}"), "null", "{", "\x00", times(100_000, "["), times(20_000, `{"":`), right+right)
}

// forms returns what the dashboard is sent.
func forms() []string {
	field := func(text string) string {
		return fmt.Sprintf("canvas=%s&module=%[2]s&name=%[2]s&reason=%[2]s&value=%[2]s&version=%[2]s&schedule=%[2]s&time_zone=%[2]s&verbs=%[2]s&canvases=%[2]s&days=%[2]s&next=%[2]s&token=%[2]s", canvasB, text)
	}
	return []string{"", field("x"), field("1"), field("%00"), field("%ff%fe"), field("%zz"), field(times(2_000, "y")), field(times(20_000, "z")), times(20_000, "canvas=x&"), times(5_000, "a=1;"),
		"value=" + times(900_000, "v"), manyKeys(5_000), strings.ReplaceAll(times(3_000, "k#=1&"), "#", "%5b"), "canvas=" + canvasA.String() + "&canvas=" + canvasB.String()}
}

// queries returns what is asked for in addresses, with parameters of names.
func queries(names []string) []string {
	all := []string{"", times(300, "unknown=1&"), times(2_000, "a&"), "%zz=%zz"}
	for _, value := range []string{canvasB.String(), "%00", "%ff%fe", "-1", "99999999999999999999", times(800, "x"), "%e2%80%ae%1b%5b2J%3Cscript%3E"} {
		query := "canvas_id=" + canvasB.String()
		if value == canvasB.String() {
			query += "&canvas=" + value
		}
		for _, name := range names {
			if name != "canvas_id" {
				query += "&" + name + "=" + value
			}
		}
		all = append(all, query)
	}
	return append(all, "canvas_id="+canvasA.String()+"&canvas_id="+canvasB.String(), "canvas="+canvasA.String()+"&canvas="+canvasB.String())
}

// ids returns what stands for {id} in paths, such as the events of canvas B.
func ids() []string {
	return []string{"2", "4", "0", "-1", "99999999999999999999", "00000000-0000-0000-0000-000000000000", canvasB.String(), "%00", "%ff", "..%2f..%2fetc", times(2_000, "x")}
}
