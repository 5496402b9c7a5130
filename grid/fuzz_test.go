package grid_test

import (
	"errors"
	"testing"

	"eventsv2/grid"
)

// FuzzDefinition: whatever the text is, it is either a grid or a list of mistakes
// that each have a place in it.
func FuzzDefinition(f *testing.F) {
	f.Add(good)
	for _, c := range mistakes {
		f.Add(c.text)
	}
	f.Add("grid: &a g\nactions: &b\n  x: *b\n  *a : {use: send, inputs: {text: &c {origin: static, static: *c}}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		actions := library(t)
		g, err := grid.Parse("f", []byte(text), actions, services)
		if (g == nil) == (err == nil) {
			t.Fatalf("both or neither: %v, %v", g, err)
		}
		if err == nil {
			if len(g.Order()) == 0 {
				t.Error("a grid without actions was accepted")
			}
			return
		}
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Fatalf("the error is a %T: %v", err, err)
		}
		for _, one := range joined.Unwrap() {
			if p := (*grid.Problem)(nil); !errors.As(one, &p) || p.Line < 1 || p.Text == "" {
				t.Errorf("a mistake is %#v", one)
			}
		}
	})
}
