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
// The tag of an input names the origins that it may have: action, event and static. A
// tag without origins means action and event. An input that may be static needs a Cast.
// Params and services may be optional, too; a field that is left out is zero.
//
// Out is the type of the action's output, which is saved as JSON. An input accepts the
// output of an action if Go could assign it; one of type *T also accepts a T, and one of type
// any or json.RawMessage every output.
//
// An Action is called from many goroutines. It is called again for the same event if its
// worker died before it had returned. It must return when ctx ends. It may return ErrSkip
// and the errors of an eventqueue.Handler.
type Action[In, Params, Services, Out any] func(ctx context.Context, call Call[In, Params, Services]) (Out, error)

// None is a struct without fields: no inputs, no params, no services, no output.
type None = struct{}

// Call is the argument of an action.
type Call[In, Params, Services any] struct {
	Inputs   In
	Params   Params
	Services Services
	ActionRun
}

// ActionRun identifies the run of an action.
type ActionRun struct {
	Canvas eventqueue.CanvasID
	// Event is the event that started the run. It identifies the run.
	Event eventqueue.EventID
	// Grid and Action are the names of the definition.
	Grid   string
	Action string
	// Attempt and ClaimID belong to the claim under which the action runs. Together
	// they are the fence.
	Attempt int32
	ClaimID eventqueue.ClaimID
}

// Key identifies this run of this action, and is the same in every attempt: an
// idempotency key for receivers.
func (r ActionRun) Key() string { return r.Event.String() + "/" + r.Action }

// Run returns a run for functions that need a handler's run, such as those of
// cleanup.Publications. It has no value, and it cannot complete the event: the grid does
// that. All actions of a grid share state that belongs to the event, such as a
// publication of one key.
func (r ActionRun) Run() *eventqueue.Run {
	key := handlerOf(r.Grid)
	return &eventqueue.Run{
		Event:   eventqueue.Event{ID: r.Event, Canvas: r.Canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier},
		Attempt: r.Attempt,
		ClaimID: r.ClaimID,
	}
}

// ErrSkip is the error that an action returns if it has nothing to do in this run. The
// action is then complete without an output, and actions that need its output do not
// run. Wrap ErrSkip to add the reason.
var ErrSkip = errors.New("there is nothing to be done")

// Actions is a registry of the Go actions that definitions may use, by name. Register
// all actions first; after that the registry is safe for concurrent use.
type Actions struct {
	byName map[string]*goAction
}

// NewActions returns an empty registry.
func NewActions() *Actions { return &Actions{byName: map[string]*goAction{}} }

func (a *Actions) names() []string { return slices.Sorted(maps.Keys(a.byName)) }

// Option is an option of an action.
type Option func(*goAction) error

// Timeout bounds the time of each call of the action. Without it, only the policy's
// Timeout for the whole attempt bounds a call.
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

// Cast sets the function that turns literals into values of an input. cast gets the
// literal as JSON and returns a value of the input's type. It is called when a definition
// is checked (an error is then a mistake in the definition), and again in each run. It
// must always return the same value for the same literal.
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

// Strict is a function for Cast: it decodes the literal as JSON and refuses unknown
// fields.
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
	call func(ctx context.Context, at ActionRun, fill filler) (any, error)
	// checkParams returns the error of the params' Validate.
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

// Register adds an action under the name that definitions use for it. The error names
// the mistakes in its types and options.
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
	a.call = func(ctx context.Context, at ActionRun, fill filler) (any, error) {
		call := Call[In, Params, Services]{ActionRun: at}
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
