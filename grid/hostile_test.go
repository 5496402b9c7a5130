package grid_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
)

// A definition of many actions is refused before its parts are looked at.
func TestNumberOfActionsIsBounded(t *testing.T) {
	t.Parallel()
	r := &rig{T: t}
	lines := make([]string, grid.MaxActions)
	for i := range lines {
		lines[i] = fmt.Sprintf("a%d", i)
	}
	if _, err := grid.Parse("f", []byte(definition(lines...)), r.actions(), nil); err != nil {
		t.Errorf("the most that there may be: %v", err)
	}
	_, err := grid.Parse("f", []byte(definition(append(lines, "more bad=x")...)), r.actions(), nil)
	if want := fmt.Sprintf("f:%d: actions: there are 1001: the limit is 1000; make more than one grid of them", grid.MaxActions+3); err == nil || err.Error() != want {
		t.Errorf("one more: %v\nwant %s", err, want)
	}
}

// What a file repeats by aliases does not make its mistakes long, nor many.
func TestMistakesRepeatedByAliasesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 50_000)
	var text strings.Builder
	text.WriteString("grid: g\nactions:\n  a: &a {use: send, inputs: {")
	for i := range 200 {
		fmt.Fprintf(&text, "i%d%s: {origin: action, action: none}, ", i, long[:1000])
	}
	text.WriteString("}}\n  b: {use: &u " + long + "}\n")
	for i := range 400 {
		fmt.Fprintf(&text, "  a%d: *a\n  b%d: {use: *u, inputs: {x: {origin: *u}}}\n", i, i)
	}
	_, err := grid.Parse("f", []byte(text.String()), library(t), services)
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("the error is a %T", err)
	}
	if n := len(joined.Unwrap()); n != 100 {
		t.Errorf("%d mistakes are reported", n)
	}
	for _, one := range joined.Unwrap() {
		p := (*grid.Problem)(nil)
		if !errors.As(one, &p) || len(p.Text) > 1010 || len(p.Path) > 1010 || strings.ContainsRune(p.Error(), '\uFFFD') {
			t.Fatalf("a mistake is %d and %d bytes long: %.300s", len(p.Path), len(p.Text), one)
		}
	}
}

// A cast may keep what it gets: the next run gets a literal of its own.
func TestEachRunHasItsOwnLiterals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	actions := grid.NewActions()
	var seen []string
	type in struct {
		Raw json.RawMessage `grid:"raw,static"`
	}
	if err := grid.Register(actions, "spoil", func(_ context.Context, c grid.Call[in, grid.None, grid.None]) (string, error) {
		seen = append(seen, string(c.Inputs.Raw))
		clear(c.Inputs.Raw)
		return "", nil
	}, grid.Cast("raw", func(literal json.RawMessage) (json.RawMessage, error) { return literal, nil })); err != nil {
		t.Fatal(err)
	}
	g, err := grid.Parse("f", []byte("grid: g\nactions:\n  spoil: {use: spoil, inputs: {raw: {origin: static, static: [9007199254740993.0, 2, 1e3, 10.0, 0.10]}}}"), actions, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.start(g, grid.Config{}, worker.Config{})
	for range 2 {
		r.emit(1)
		r.await(machine.ExecutesToCompletion)
	}
	if len(seen) != 2 || seen[0] != "[9007199254740993.0,2,1000,10,0.10]" || seen[1] != seen[0] {
		t.Errorf("the literals were %q", seen)
	}
}
