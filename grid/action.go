package grid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// Action is a Go function that grids can use. In, Params and Services are structs;
// None stands for one without fields. Every exported field has a tag with its name
// in the definition:
//
//	type reportInputs struct {
//		Issues   []Issue  `grid:"issues,action"`          // from another action only
//		Template Template `grid:"template,action,static"` // or from a literal
//		Author   *Author  `grid:"author,event,optional"`  // or from nowhere
//	}
//
// An input names the origins that it may have: action, event and static. Without
// any it may come from an action or the event. One with static needs a Cast.
// optional goes for params and services as well; what is left out is zero.
//
// Out is what it puts out, as JSON. An input takes the output of an action if Go
// would assign it; one of type any or json.RawMessage takes every output.
//
// It is called from many goroutines, and again for the same event when its worker
// died before it had finished. It must return when ctx ends. Its errors are those of an
// eventqueue.Handler, and ErrSkip.
type Action[In, Params, Services, Out any] func(ctx context.Context, call Call[In, Params, Services]) (Out, error)

// None is a struct without fields: no inputs, no params, no services, no output.
type None = struct{}

// Call is what an action gets.
type Call[In, Params, Services any] struct {
	Inputs   In
	Params   Params
	Services Services
	Site
}

// Site is the run, and the action in it.
type Site struct {
	Canvas eventqueue.CanvasID
	// Event is the run: the event that started it.
	Event eventqueue.EventID
	// Grid and Action are the names of the definition.
	Grid   string
	Action string
	// Attempt and ClaimID are those of the event under which the action runs: together
	// the fence.
	Attempt int32
	ClaimID eventqueue.ClaimID
}

// Key identifies this run of this action, and is the same in every attempt: an
// idempotency key for receivers.
func (s Site) Key() string { return s.Event.String() + "/" + s.Action }

// Run is the run for functions that need that of a handler, such as those of
// cleanup.Publications. It has no value and cannot complete the event, which the grid
// does. State per event, such as a publication of one key, is common to all actions of
// a grid.
func (s Site) Run() *eventqueue.Run {
	key := handlerOf(s.Grid)
	return &eventqueue.Run{
		Event:   eventqueue.Event{ID: s.Event, Canvas: s.Canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier},
		Attempt: s.Attempt,
		ClaimID: s.ClaimID,
	}
}

// ErrSkip is returned by an action that has nothing to do in this run. The action is
// complete then, without an output, and actions that need its output do not run. Wrap
// it to add the reason.
var ErrSkip = errors.New("there is nothing to be done")

// Actions are the Go actions that definitions may use, by name. Register all of
// them first; after that it is safe for concurrent use.
type Actions struct {
	byName map[string]*goAction
}

// NewActions returns an empty registry.
func NewActions() *Actions { return &Actions{byName: map[string]*goAction{}} }

func (a *Actions) names() []string { return slices.Sorted(maps.Keys(a.byName)) }

// Option changes what is known of an action.
type Option func(*goAction) error

// Timeout bounds each call of the action, within the time that the handler's
// policy gives to the whole run. Without it that is the only bound.
func Timeout(d time.Duration) Option {
	return func(a *goAction) error {
		if d <= 0 {
			return fmt.Errorf("Timeout is %s: it must be positive", d)
		}
		a.timeout = d
		return nil
	}
}

// Version is the version of the action's code; the default is "". Change it when the
// new code cannot use outputs of the old code: current runs then run the action again.
func Version(v string) Option {
	return func(a *goAction) error {
		a.version = v
		return nil
	}
}

// Cast makes literals into values of an input. cast gets the literal as JSON and
// returns a value of the input's type. It is called when a definition is checked,
// where its error is a mistake in the definition, and again for each run: it must
// always return the same.
func Cast[T any](input string, cast func(literal json.RawMessage) (T, error)) Option {
	return func(a *goAction) error {
		switch {
		case cast == nil:
			return fmt.Errorf("the cast of input %q is nil", input)
		case a.casts[input].to != nil:
			return fmt.Errorf("input %q has two casts", input)
		}
		a.casts[input] = caster{to: reflect.TypeFor[T](), cast: func(literal json.RawMessage) (any, error) { return cast(literal) }}
		return nil
	}
}

// Strict is a Cast for literals that are written as the type is in JSON. An
// unknown field is refused.
func Strict[T any](literal json.RawMessage) (T, error) {
	var value T
	err := strictly(literal, &value)
	return value, err
}

// goAction is a registered action without its types.
type goAction struct {
	name     string
	inputs   []slot
	params   []slot
	services []slot
	out      reflect.Type
	casts    map[string]caster
	timeout  time.Duration
	version  string

	// call calls the function with structs that fill has filled.
	call func(ctx context.Context, at Site, fill filler) (any, error)
	// checkParams reports what Validate of the params says of them.
	checkParams func(fill func(params reflect.Value) error) error
}

// filler sets the fields of the three structs.
type filler func(inputs, params, services reflect.Value) error

type caster struct {
	to   reflect.Type
	cast func(literal json.RawMessage) (any, error)
}

// of casts a copy of a literal, which the action may keep and change.
func (c caster) of(literal json.RawMessage) (any, error) { return c.cast(slices.Clone(literal)) }

// Register adds an action under a name, which definitions use. The error names
// what the types or options have wrong.
//
// If Params has a method Validate() error, it is called when a definition is
// checked, and its error is a mistake in the definition.
func Register[In, Params, Services, Out any](actions *Actions, name string, action Action[In, Params, Services, Out], options ...Option) error {
	if actions == nil {
		return fmt.Errorf("grid.Register %q: the registry is nil", name)
	}
	a, err := newGoAction(name, action, options)
	if err != nil {
		return fmt.Errorf("grid.Register %q: %w", name, err)
	}
	if actions.byName[name] != nil {
		return fmt.Errorf("grid.Register %q: the name is taken", name)
	}
	actions.byName[name] = a
	return nil
}

func newGoAction[In, Params, Services, Out any](name string, action Action[In, Params, Services, Out], options []Option) (*goAction, error) {
	if action == nil {
		return nil, errors.New("the function is nil")
	}
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("the name %w", err)
	}
	a := &goAction{name: name, out: reflect.TypeFor[Out](), casts: map[string]caster{}}
	for _, option := range options {
		if err := option(a); err != nil {
			return nil, err
		}
	}
	a.call = func(ctx context.Context, at Site, fill filler) (any, error) {
		call := Call[In, Params, Services]{Site: at}
		err := fill(reflect.ValueOf(&call.Inputs).Elem(), reflect.ValueOf(&call.Params).Elem(), reflect.ValueOf(&call.Services).Elem())
		if err != nil {
			return nil, err
		}
		return action(ctx, call)
	}
	a.checkParams = func(fill func(reflect.Value) error) error {
		var params Params
		if err := fill(reflect.ValueOf(&params).Elem()); err != nil {
			return err
		}
		if v, ok := any(&params).(interface{ Validate() error }); ok {
			return v.Validate()
		}
		return nil
	}
	return a, a.readTypes(reflect.TypeFor[In](), reflect.TypeFor[Params](), reflect.TypeFor[Services]())
}
