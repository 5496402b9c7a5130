package grid_test

import (
	"encoding/json"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/grid"
)

var canvas = eventqueue.CanvasID{0xca, 15: 1}

func TestNewInputEncodesItsFields(t *testing.T) {
	t.Parallel()
	event, err := grid.NewInput(canvas, "report", "daily", map[string]int{"a": 1})
	if err != nil {
		t.Fatal(err)
	}
	if event.Canvas != canvas || event.Handler().String() != "GRID/report/_" || string(event.Value) != `{"a":1}` || event.OrderingKey != "daily" {
		t.Errorf("the event is %+v", event)
	}
	// I8: what is JSON already stays as it is.
	raw := json.RawMessage("{ \"a\" : 1.0 }")
	if event, err = grid.NewInput(canvas, "report", "daily", raw); err != nil || string(event.Value) != string(raw) {
		t.Errorf("the value is %s, %v", event.Value, err)
	}
	for _, c := range []struct {
		grid, instance string
		value          any
		want           string
	}{
		{"", "i", 1, "the name is empty"},
		{"a.b", "i", 1, `the name is "a.b"`},
		{"g", "", 1, "the instance is empty"},
		{"g", "a\nb", 1, "the instance \"a\\nb\" holds the control character"},
		{"g", strings.Repeat("x", 256), 1, "the instance is 256 bytes long: the limit is 255"},
		{"g", "i", func() {}, "write its value as JSON"},
	} {
		if _, err := grid.NewInput(canvas, c.grid, c.instance, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewInput(%q, %q): %v, want %s", c.grid, c.instance, err, c.want)
		}
	}
}

func TestGridChecksItsInput(t *testing.T) {
	t.Parallel()
	g, err := grid.Parse("f", []byte(good), library(t), services)
	if err != nil {
		t.Fatal(err)
	}
	if event, err := g.NewInput(g.Canvas(), "daily", "open"); err != nil || event.OrderingKey != "daily" || event.Name != "report" {
		t.Errorf("a good input: %+v, %v", event, err)
	}
	for _, c := range []struct {
		canvas eventqueue.CanvasID
		value  any
		want   string
	}{
		{canvas, "open", "it is for canvas 0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11, and not for ca"},
		{g.Canvas(), 7, "the event does not fit actions.fetch.inputs.query: it is a number: it must be a string"},
		{g.Canvas(), nil, "the event does not fit actions.fetch.inputs.query: it is null: it must be a string"},
		{g.Canvas(), json.RawMessage(" null\n"), "it is null: it must be a string"},
		{g.Canvas(), json.RawMessage("{"), "the event does not fit actions.fetch.inputs.query: unexpected end of JSON input"},
	} {
		if _, err := g.NewInput(c.canvas, "daily", c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewInput(%v): %v, want %s", c.value, err, c.want)
		}
	}
}
