package grid_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"eventsv2/grid"
)

// of is an action with these types.
func of[In, Params, Services, Out any](options ...grid.Option) func(*grid.Actions) error {
	return func(actions *grid.Actions) error {
		return grid.Register(actions, "do", func(context.Context, grid.Call[In, Params, Services]) (out Out, err error) {
			return out, nil
		}, options...)
	}
}

type none = grid.None

func toText(json.RawMessage) (string, error) { return "", nil }

func TestRegisterRefusesUnusableActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		add  func(*grid.Actions) error
		want string
	}{
		{"inputs are no struct", of[string, none, none, none](), "inputs: string is a string: it must be a struct, or grid.None"},
		{"a field without a name", of[struct{ Text string }, none, none, none](), "field Text of struct { Text string } has no name: give it a tag like `grid:\"name\"`"},
		{"a name with a dot", of[none, struct {
			A string `grid:"a.b"`
		}, none, none](), `has a name that is "a.b": it may have letters`},
		{"a field that is not exported", of[none, none, struct {
			db int `grid:"db"`
		}, none](), "field db of struct { db int \"grid:\\\"db\\\"\" } has a tag and is not exported"},
		{"two fields of one name", of[struct {
			A, B string `grid:"a"`
		}, none, none, none](), `is called "a" like another one`},
		{"an unknown word", of[struct {
			A string `grid:"a,actions"`
		}, none, none, none](), `has "actions" in its tag: what may follow the name is optional, action, event, static`},
		{"an origin twice", of[struct {
			A string `grid:"a,static,action,static"`
		}, none, none, none](grid.Cast("a", toText)), `has "static" twice in its tag`},
		{"optional twice", of[struct {
			A string `grid:"a,optional,optional"`
		}, none, none, none](), `has "optional" twice in its tag`},
		{"an origin of a param", of[none, struct {
			A string `grid:"a,static"`
		}, none, none](), `has "static" in its tag: what may follow the name is optional`},
		{"static without a cast", of[struct {
			A string `grid:"a,static"`
		}, none, none, none](), `input "a" may be static and has no cast: add grid.Cast("a", …), perhaps with grid.Strict[string]`},
		{"a cast without static", of[struct {
			A string `grid:"a"`
		}, none, none, none](grid.Cast("a", toText)), `input "a" has a cast and may not be static`},
		{"a cast of another type", of[struct {
			A int `grid:"a,static"`
		}, none, none, none](grid.Cast("a", toText)), `the cast of input "a" makes a string: it must make an int`},
		{"a cast of nothing", of[none, none, none, none](grid.Cast("a", toText)), `there is a cast of input "a", which the inputs do not have`},
		{"two casts", of[struct {
			A string `grid:"a,static"`
		}, none, none, none](grid.Cast("a", toText), grid.Cast("a", toText)), `input "a" has two casts`},
		{"a cast that is nil", of[none, none, none, none](grid.Cast[string]("a", nil)), `the cast of input "a" is nil`},
		{"an input that cannot be read", of[struct {
			A error `grid:"a"`
		}, none, none, none](), `input "a" is an error, which cannot be read from JSON`},
		{"a param that cannot be read", of[none, struct {
			A chan int `grid:"a"`
		}, none, none](), `param "a" is a chan int, which cannot be read from JSON`},
		{"an output that cannot be written", of[none, none, none, func()](), "the output cannot be written as JSON: json: unsupported type: func()"},
		{"no time", of[none, none, none, none](grid.Timeout(0)), "Timeout is 0s: it must be positive"},
		{"no function", func(a *grid.Actions) error {
			return grid.Register[none, none, none, none](a, "do", nil)
		}, "the function is nil"},
		{"a bad name", func(a *grid.Actions) error {
			return grid.Register(a, "", func(context.Context, grid.Call[none, none, none]) (none, error) { return none{}, nil })
		}, "the name is empty"},
		{"a name that is taken", func(a *grid.Actions) error {
			return errors.Join(of[none, none, none, none]()(a), of[none, none, none, none]()(a))
		}, `grid.Register "do": the name is taken`},
		{"no registry", func(*grid.Actions) error { return of[none, none, none, none]()(nil) }, "the registry is nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := c.add(grid.NewActions())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "grid.Register ") {
				t.Errorf("the error is %v\nwant %s", err, c.want)
			}
		})
	}
}

// level is an output that has no text while it is zero.
type level int

func (l level) MarshalText() ([]byte, error) {
	if l == 0 {
		return nil, errors.New("no level")
	}
	return []byte(strconv.Itoa(int(l))), nil
}

// pointed is an output that panics while it is zero.
type pointed struct{ to *int }

func (p pointed) MarshalJSON() ([]byte, error) { return json.Marshal(*p.to) }

// What only a value of the type can tell is left to the values.
func TestRegisterAcceptsOutputsWithoutZeroJSON(t *testing.T) {
	t.Parallel()
	for _, add := range []func(*grid.Actions) error{
		of[none, none, none, struct{ Level level }](), of[none, none, none, map[string]level](), of[none, none, none, pointed](),
	} {
		if err := add(grid.NewActions()); err != nil {
			t.Error(err)
		}
	}
}

// An input that is never read from JSON may be of any type: its cast makes it.
func TestRegisterAcceptsStaticInputsOfAnyType(t *testing.T) {
	t.Parallel()
	match := grid.Cast("match", func(json.RawMessage) (func(string) bool, error) { return nil, nil })
	clock := grid.Cast("clock", func(json.RawMessage) (fmt.Stringer, error) { return time.Second, nil })
	if err := of[struct {
		Match func(string) bool `grid:"match,static"`
		Clock fmt.Stringer      `grid:"clock,static,optional"`
	}, none, none, none](match, clock)(grid.NewActions()); err != nil {
		t.Error(err)
	}
	err := of[struct {
		Clock fmt.Stringer `grid:"clock,static,event"`
	}, none, none, none](clock)(grid.NewActions())
	if err == nil || !strings.Contains(err.Error(), `input "clock" is a fmt.Stringer, which cannot be read from JSON`) {
		t.Errorf("an interface from an event: %v", err)
	}
}

func TestRegisterAcceptsUsableActions(t *testing.T) {
	t.Parallel()
	type inputs struct {
		Text    string          `grid:"text,static,action,event,optional"`
		Raw     json.RawMessage `grid:"raw"`
		Any     any             `grid:"any"`
		private int
	}
	_ = inputs{private: 1}
	err := of[inputs, none, struct {
		Context context.Context `grid:"context,optional"`
	}, any](grid.Cast("text", toText), grid.Timeout(time.Second), grid.Version("2"))(grid.NewActions())
	if err != nil {
		t.Error(err)
	}
}
