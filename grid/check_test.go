package grid_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/grid"
)

type issue struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
}

type template struct {
	Title string `json:"title"`
	Rows  int    `json:"rows"`
}

type source interface{ Issues() []issue }

type tracker struct{ list []issue }

func (t tracker) Issues() []issue { return t.list }

type (
	fetchInputs struct {
		Query string `grid:"query"`
	}
	fetchParams struct {
		Credentials string `grid:"credentials"`
		Limit       int    `grid:"limit,optional"`
	}
	fetchServices struct {
		Source source   `grid:"source"`
		Cache  *tracker `grid:"cache,optional"`
	}
	renderInputs struct {
		Issues   []issue   `grid:"issues,action"`
		Template template  `grid:"template,static,action"`
		Author   *string   `grid:"author,event,optional"`
		Any      any       `grid:"any,optional"`
		Due      []float64 `grid:"due,static,optional"`
	}
	sendInputs struct {
		Text string `grid:"text"`
	}
)

func (p fetchParams) Validate() error {
	if p.Limit < 0 {
		return fmt.Errorf("limit is %d: it must not be negative", p.Limit)
	}
	return nil
}

// library has the actions for the definitions of these tests.
func library(t *testing.T) *grid.Actions {
	t.Helper()
	actions := grid.NewActions()
	err := errors.Join(
		grid.Register(actions, "fetch", func(context.Context, grid.Call[fetchInputs, fetchParams, fetchServices]) ([]issue, error) {
			return nil, nil
		}),
		grid.Register(actions, "render", func(context.Context, grid.Call[renderInputs, grid.None, grid.None]) (string, error) {
			return "", nil
		}, grid.Cast("template", grid.Strict[template]), grid.Cast("due", func(literal json.RawMessage) ([]float64, error) {
			if string(literal) == `"boom"` {
				panic("boom")
			}
			return nil, fmt.Errorf("no dates: %s", literal)
		})),
		grid.Register(actions, "send", func(context.Context, grid.Call[sendInputs, grid.None, grid.None]) (grid.None, error) {
			return grid.None{}, nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return actions
}

var services = grid.Services{"issues": tracker{}, "cache": &tracker{}, "number": 7, "nothing": nil, "absent": (*tracker)(nil)}

// good is a definition without mistakes. Each of its actions begins at a line
// that the tests below rely on.
const good = `grid: report
canvas: 0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11
actions:
  fetch:
    use: fetch
    inject:
      source: issues
    params:
      credentials: gitlab.token
    inputs:
      query: {origin: event}
  render:
    use: render
    inputs:
      issues:
        origin: action
        action: fetch
      template:
        origin: static
        static: {title: Open, rows: 3}
  send:
    use: send
    inputs:
      text: {origin: action, action: render}
`

func TestValidDefinitionIsAccepted(t *testing.T) {
	t.Parallel()
	g, err := grid.Parse("f", []byte(good), library(t), services)
	if err != nil {
		t.Fatal(err)
	}
	if g.Name() != "report" || g.Canvas().String() != "0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11" ||
		g.Handler() != (eventqueue.HandlerKey{Module: "GRID", Name: "report", Modifier: "_"}) {
		t.Errorf("the grid is %s on %s, with handler %s", g.Name(), g.Canvas(), g.Handler())
	}
	if want := []string{"fetch", "render", "send"}; !slices.Equal(g.Order(), want) {
		t.Errorf("the order is %v", g.Order())
	}
}

func TestActionsAreOrderedByTheirInputs(t *testing.T) {
	t.Parallel()
	var actions strings.Builder
	for _, pair := range []string{"d c", "b a", "c b", "a", "e c"} {
		name, from, takes := strings.Cut(pair, " ")
		origin := "{origin: event}"
		if takes {
			origin = "{origin: action, action: " + from + "}"
		}
		fmt.Fprintf(&actions, "  %s: {use: echo, inputs: {in: %s}}\n", name, origin)
	}
	echo := grid.NewActions()
	if err := grid.Register(echo, "echo", func(_ context.Context, c grid.Call[struct {
		In string `grid:"in"`
	}, grid.None, grid.None]) (string, error) {
		return c.Inputs.In, nil
	}); err != nil {
		t.Fatal(err)
	}
	g, err := grid.Parse("f", []byte("grid: g\nactions:\n"+actions.String()), echo, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "d", "e"}; !slices.Equal(g.Order(), want) {
		t.Errorf("the order is %v, want %v", g.Order(), want)
	}
}

// replace makes a definition with a mistake.
func replace(pairs ...string) string {
	text := good
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			panic("there is no " + pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// mistakes are definitions with the beginnings of all the messages they earn.
var mistakes = []struct {
	name, text string
	want       []string
}{
	{"nothing", "", []string{"f:1: the file is empty: name the grid"}},
	{"not YAML", "grid: [", []string{"f:1: not YAML:"}},
	{"two grids", good + "---\ngrid: b\n", []string{"f:25: a second document begins here"}},
	{"a list", "- grid", []string{"f:1: the file is a list"}},
	{"no name, no actions", "canvas: 0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11", []string{"f:1: grid: is missing", "f:1: actions: is missing"}},
	{"empty actions", "grid: g\nactions: {}", []string{"f:2: actions: there are none"}},
	{"null actions", "grid: g\nactions:", []string{"f:2: actions: there are none"}},
	{"a list of actions", "grid: g\nactions: [a]", []string{"f:2: actions: this is a list: write it as keys and values"}},
	{"bad names", "grid: a.b\nactions: {\"x y\": {use: nop}}", []string{
		`f:1: grid: the name is "a.b": it may have`, `f:2: actions: the name is "x y"`, `f:2: actions.x y.use: there is no Go action "nop"`}},
	{"bad canvas", replace("0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11", "mine"), []string{`f:2: canvas: "mine" is not a uuid`}},
	{"zero canvas", replace("0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11", "00000000-0000-0000-0000-000000000000"), []string{"f:2: canvas: it is all zeros"}},
	{"unknown key at the top", good + "version: 1\n", []string{`f:25: unknown key "version": the keys of the file are grid, canvas, actions`}},
	{"unknown key of an action", replace("    use: send\n", "    use: send\n    retry: 1\n"), []string{`f:23: actions.send: unknown key "retry": the keys of an action are use, inject, params, inputs`}},
	{"unknown key of an input", replace("origin: action, action: render", "origin: action, action: render, from: x"), []string{`f:24: actions.send.inputs.text: unknown key "from"`}},
	{"an action twice", good + "  send: {use: send}\n", []string{`f:25: actions: "send" is there twice, first in line 21`}},
	{"an input twice", replace("{origin: action, action: render}", "{origin: action, action: render}\n      text: {origin: event}"), []string{`f:25: actions.send.inputs: "text" is there twice, first in line 24`}},
	{"an action is a word", replace("  send:\n    use: send\n    inputs:\n      text: {origin: action, action: render}\n", "  send: send\n"), []string{"f:21: actions.send: an action is a text"}},
	{"no Go action", replace("    use: send\n", ""), []string{"f:21: actions.send.use: is missing"}},
	{"unknown Go action", replace("use: send", "use: post"), []string{`f:22: actions.send.use: there is no Go action "post": there are fetch, render, send`}},
	{"a number for a Go action", replace("use: send", "use: 1"), []string{"f:22: actions.send.use: it is a number"}},

	{"missing service", replace("    inject:\n      source: issues\n", ""), []string{"f:4: actions.fetch.inject.source: is missing: name a service; those of type grid_test.source are cache, issues"}},
	{"unknown service", replace("source: issues", "source: gitlab"), []string{`f:7: actions.fetch.inject.source: there is no service "gitlab": there are absent, cache, issues, nothing, number`}},
	{"a service of another type", replace("source: issues", "source: number"), []string{`f:7: actions.fetch.inject.source: the service "number" is an int: it must be a grid_test.source`}},
	{"a service that is nil", replace("source: issues", "source: nothing"), []string{`f:7: actions.fetch.inject.source: the service "nothing" is nil`}},
	{"a service that is a nil pointer", replace("source: issues", "source: absent"), []string{`f:7: actions.fetch.inject.source: the service "absent" is nil`}},
	{"a service that the action does not have", replace("source: issues", "source: issues\n      log: issues"), []string{"f:8: actions.fetch.inject.log: the Go action fetch has no service of this name: it has source, cache"}},
	{"inject is a list", replace("    inject:\n      source: issues\n", "    inject: [issues]\n"), []string{"f:6: actions.fetch.inject: this is a list", "f:6: actions.fetch.inject.source: is missing"}},

	{"missing param", replace("      credentials: gitlab.token\n", "      limit: 3\n"), []string{"f:9: actions.fetch.params.credentials: is missing: give it a string"}},
	{"missing params", replace("    params:\n      credentials: gitlab.token\n", ""), []string{"f:4: actions.fetch.params.credentials: is missing"}},
	{"an unknown param", replace("credentials: gitlab.token", "credentials: x\n      token: y"), []string{"f:10: actions.fetch.params.token: the Go action fetch has no param of this name: it has credentials, limit"}},
	{"params of none", replace("    use: send\n", "    use: send\n    params: {a: 1}\n"), []string{"f:23: actions.send.params.a: the Go action send has no param of this name: it has none"}},
	{"a param of another type", replace("credentials: gitlab.token", "credentials: x\n      limit: many"), []string{"f:10: actions.fetch.params.limit: it is a string: it must be an int"}},
	{"a param of another type by an alias", replace("credentials: gitlab.token", "credentials: &many x\n      limit: *many"), []string{"f:10: actions.fetch.params.limit: it is a string: it must be an int"}},
	{"an empty param", replace("credentials: gitlab.token", "credentials:"), []string{"f:9: actions.fetch.params.credentials: it is empty: give it a string"}},
	{"params that Validate refuses", replace("credentials: gitlab.token", "credentials: x\n      limit: -1"), []string{"f:9: actions.fetch.params: limit is -1"}},

	{"missing input", replace("      query: {origin: event}\n", ""), []string{"f:10: actions.fetch.inputs.query: is missing: give it an origin, which may be action, event"}},
	{"missing inputs", replace("    inputs:\n      query: {origin: event}\n", ""), []string{"f:4: actions.fetch.inputs.query: is missing"}},
	{"an input that the action does not have", replace("query: {origin: event}", "query: {origin: event}\n      filter: {origin: event}"), []string{"f:12: actions.fetch.inputs.filter: the Go action fetch has no input of this name: it has query"}},
	{"an input is a word", replace("{origin: event}", "event"), []string{"f:11: actions.fetch.inputs.query: an input is a text"}},
	{"no origin", replace("{origin: event}", "{}"), []string{"f:11: actions.fetch.inputs.query.origin: is missing"}},
	{"an unknown origin", replace("origin: event", "origin: input"), []string{`f:11: actions.fetch.inputs.query.origin: "input" is no origin: it is action, event or static`}},
	{"an origin that is not allowed", replace("        origin: action\n        action: fetch\n", "        origin: event\n"), []string{"f:16: actions.render.inputs.issues.origin: the Go action render does not take issues from event: it takes it from action"}},
	{"a static where none is allowed", replace("{origin: event}", "{origin: static, static: x}"), []string{"f:11: actions.fetch.inputs.query.origin: the Go action fetch does not take query from static"}},
	{"origin action without an action", replace("{origin: action, action: render}", "{origin: action}"), []string{"f:24: actions.send.inputs.text.action: is missing"}},
	{"origin static without a literal", replace("        static: {title: Open, rows: 3}\n", ""), []string{"f:19: actions.render.inputs.template.static: is missing"}},
	{"two origins", replace("{origin: event}", "{origin: event, action: send, static: x}"), []string{
		"f:11: actions.fetch.inputs.query.action: it does not belong to origin event", "f:11: actions.fetch.inputs.query.static: it does not belong"}},
	{"an unknown action", replace("action: render", "action: renders"), []string{`f:24: actions.send.inputs.text.action: there is no action "renders" in this grid: there are fetch, render, send`}},
	{"a wrong type", replace("action: render", "action: fetch"), []string{"f:24: actions.send.inputs.text.action: the output of fetch is a []grid_test.issue: the input is a string"}},

	{"a literal of another type", replace("rows: 3", "rows: many"), []string{"f:20: actions.render.inputs.template.static: it cannot be made into a grid_test.template: field rows is a string: it must be an int"}},
	{"a literal with an unknown field", replace("rows: 3", "columns: 3"), []string{`f:20: actions.render.inputs.template.static: it cannot be made into a grid_test.template: unknown field "columns"`}},
	{"a field of a literal in another case", replace("rows: 3", "Rows: 3"), []string{`f:20: actions.render.inputs.template.static: it cannot be made into a grid_test.template: unknown field "Rows"`}},
	{"an empty literal", replace("{title: Open, rows: 3}", ""), []string{"f:20: actions.render.inputs.template.static: it cannot be made into a grid_test.template: it is empty"}},
	{"a literal that the cast refuses", replace("  send:\n", "      due: {origin: static, static: [2026-01-02]}\n  send:\n"), []string{`f:21: actions.render.inputs.due.static: it cannot be made into a []float64: no dates: ["2026-01-02"]`}},
	{"a cast that panics", replace("  send:\n", "      due: {origin: static, static: boom}\n  send:\n"), []string{"f:21: actions.render.inputs.due.static: it cannot be made into a []float64: the action's code panicked: boom"}},
	{"what JSON does not have", replace("rows: 3", "rows: .inf, more: [1, !!binary aGk=, -.inf, .nan]"), []string{
		"f:20: actions.render.inputs.template.static.rows: .inf cannot be used: JSON has no such number", "f:20: actions.render.inputs.template.static.more[1]: it is of type !!binary",
		"f:20: actions.render.inputs.template.static.more[2]: -.inf cannot be used", "f:20: actions.render.inputs.template.static.more[3]: .nan cannot be used"}},
	{"a merge key", replace("rows: 3", "<<: {rows: 3}"), []string{"f:20: actions.render.inputs.template.static: merge keys (<<) are not supported"}},
	{"numbers that YAML reads as others", replace("rows: 3", "rows: 017, more: [1e400, -08, 1_7, 1e-400, -0.00002E-330, 0.0e-400, 5e-324]"), []string{
		"f:20: actions.render.inputs.template.static.rows: 017 begins with a zero", "f:20: actions.render.inputs.template.static.more[0]: 1e400 is too large for a number",
		"f:20: actions.render.inputs.template.static.more[1]: -08", "f:20: actions.render.inputs.template.static.more[3]: 1e-400 is too small for a number",
		"f:20: actions.render.inputs.template.static.more[4]: -0.00002E-330 is too small"}},
	{"a field of a literal twice", replace("rows: 3", "title: b"), []string{`f:20: actions.render.inputs.template.static: "title" is there twice`}},

	{"an action of itself", replace("action: render}", "action: send}"), []string{
		"f:24: actions.send.inputs.text.action: the output of send is a struct {}", "f:24: actions.send.inputs.text: cycle: send → send"}},
	{"a cycle", replace("{origin: event}", "{origin: action, action: render}"), []string{
		"f:17: actions.render.inputs.issues: cycle: fetch → render → fetch: each takes from the next"}},
	{"a cycle behind a Go action that is not known", replace("{origin: event}", "{origin: action, action: render}", "use: fetch", "use: fetches"), []string{
		`f:5: actions.fetch.use: there is no Go action "fetches"`, "f:17: actions.render.inputs.issues: cycle: fetch → render → fetch"}},
	{"many at once", replace("source: issues", "source: gitlab", "credentials: gitlab.token", "limit: many", "origin: event", "origin: static, static: 1",
		"rows: 3", "rows: x", "use: send", "use: post", "action: render", "action: renders"), []string{
		`f:7: actions.fetch.inject.source: there is no service "gitlab"`,
		"f:9: actions.fetch.params.limit: it is a string",
		"f:9: actions.fetch.params.credentials: is missing",
		"f:11: actions.fetch.inputs.query.origin: the Go action fetch does not take query from static",
		"f:20: actions.render.inputs.template.static: it cannot be made",
		`f:22: actions.send.use: there is no Go action "post"`,
		`f:24: actions.send.inputs.text.action: there is no action "renders"`,
	}},
}

func TestMistakesAreAllReportedWithTheirPlaces(t *testing.T) {
	t.Parallel()
	actions := library(t)
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, err := grid.Parse("f", []byte(c.text), actions, services)
			if err == nil || g != nil {
				t.Fatalf("it was accepted: %v, %v", g, err)
			}
			got := strings.Split(err.Error(), "\n")
			same := len(got) == len(c.want)
			for i := range min(len(got), len(c.want)) {
				same = same && strings.HasPrefix(got[i], c.want[i])
			}
			if !same {
				t.Errorf("the mistakes are\n%s\nwant\n%s", err, strings.Join(c.want, "\n"))
			}
			var p *grid.Problem
			if !errors.As(err, &p) || p.File != "f" || p.Line < 1 {
				t.Errorf("the first mistake is %+v", p)
			}
		})
	}
}

// Aliases are followed, do not make a small file a large one, and have an end.
func TestAliasesAreFollowedWithinBounds(t *testing.T) {
	t.Parallel()
	actions := library(t)
	shared := replace("{title: Open, rows: 3}", "&t {title: Open, rows: 3}") +
		"  again:\n    use: render\n    inputs:\n      issues: {origin: action, action: fetch}\n      template: {origin: static, static: *t}\n"
	if _, err := grid.Parse("f", []byte(shared), actions, services); err != nil {
		t.Errorf("an alias is refused: %v", err)
	}
	bomb := "&a [x, x, x, x, x, x, x, x, x, x]"
	for i := range 8 {
		c := string(rune('a' + i))
		bomb = fmt.Sprintf("&%c [%s%s]", c[0]+1, bomb, strings.Repeat(", *"+c, 9))
	}
	for _, loop := range []string{"&l {title: *l}", "&l [*l, *l]"} {
		_, err := grid.Parse("f", []byte(replace("{title: Open, rows: 3}", loop)), actions, services)
		if err == nil || err.Error() != "f:20: actions.render.inputs.template.static: it is nested deeper than 100 levels: does an alias stand within its own anchor?" {
			t.Errorf("an alias of itself: %v", err)
		}
	}
	keys := "[&k {" + strings.Repeat("x", 1000) + ": 1}" + strings.Repeat(", *k", 2000) + "]"
	for name, literal := range map[string]string{"a billion values": bomb, "long keys": keys} {
		_, err := grid.Parse("f", []byte(replace("{title: Open, rows: 3}", literal)), actions, services)
		if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "with what aliases repeat, the literals are longer") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

func TestLoadReadsTheFileOrNamesIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.yaml")
	if _, err := grid.Load(path, library(t), services); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte(replace("use: send", "use: post")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := grid.Load(path, library(t), services); err == nil || !strings.HasPrefix(err.Error(), path+":22: actions.send.use: ") {
		t.Errorf("the mistake is %v", err)
	}
	if _, err := grid.Parse("f", []byte(good), nil, services); err == nil {
		t.Error("a definition was accepted without any Go actions")
	}
}
