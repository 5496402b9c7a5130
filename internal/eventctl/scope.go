package eventctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
)

// scopeFlags are --canvas, --module and --name.
type scopeFlags struct {
	cmd                  *cobra.Command
	canvas, module, name string
}

// scopeUsage is what the help says of them.
type scopeUsage struct{ canvas, module, name string }

func addScopeFlags(cmd *cobra.Command, usage scopeUsage) *scopeFlags {
	f := &scopeFlags{cmd: cmd}
	cmd.Flags().StringVar(&f.canvas, "canvas", "", usage.canvas)
	cmd.Flags().StringVar(&f.module, "module", "", usage.module)
	cmd.Flags().StringVar(&f.name, "name", "", usage.name)
	return f
}

// addScope gives a command the flags of the one handler on a canvas that it is about.
func addScope(cmd *cobra.Command) *scopeFlags {
	f := addScopeFlags(cmd, scopeUsage{"`uuid` of the canvas", "module of the handler", "name of the handler"})
	require(cmd, "canvas", "module", "name")
	return f
}

// addLimitScope gives a command the flags of what a limit is for: a handler on a canvas
// or, without one, the whole canvas.
func addLimitScope(cmd *cobra.Command) *scopeFlags {
	f := addScopeFlags(cmd, scopeUsage{"`uuid` of the canvas", "only of the handler in this module", "only of the handler of this name"})
	require(cmd, "canvas")
	cmd.MarkFlagsRequiredTogether("module", "name")
	return f
}

// addFilter gives a command the flags of a scope as a filter.
func addFilter(cmd *cobra.Command) *scopeFlags {
	return addScopeFlags(cmd, scopeUsage{"only the canvas with this `uuid`", "only handlers in this module", "only handlers of this name"})
}

// addCanvasFilter gives a command --canvas as a filter.
func addCanvasFilter(cmd *cobra.Command) {
	cmd.Flags().String("canvas", "", "only the canvas with this `uuid`")
}

// scope is the scope that the flags name.
func (f *scopeFlags) scope() (eventqueue.Scope, error) {
	canvas, err := parseCanvas(f.canvas)
	if err != nil {
		return eventqueue.Scope{}, err
	}
	scope := eventqueue.Scope{Canvas: canvas, Module: f.module, Name: f.name}
	if err := scope.Validate(); err != nil {
		return scope, badInput(err)
	}
	return scope, nil
}

// filter is the filter that the flags describe. A flag that is given must name
// something: an empty one, as from an unset variable of a script, is not all.
func (f *scopeFlags) filter() (filter inspect.Filter, err error) {
	if filter.Canvas, err = canvasFilter(f.cmd); err != nil {
		return filter, err
	}
	key := eventqueue.HandlerKey{Module: "_", Name: "_", Modifier: "_"}
	if f.cmd.Flags().Changed("module") {
		key.Module = f.module
	}
	if f.cmd.Flags().Changed("name") {
		key.Name = f.name
	}
	if field, err := eventqueue.CheckHandler(key); err != nil {
		return filter, badInput(fmt.Errorf("%s: %w", field, err))
	}
	filter.Module, filter.Name = f.module, f.name
	return filter, nil
}

// canvasFilter is the canvas that a filter's --canvas names, nil when it is not given.
func canvasFilter(cmd *cobra.Command) (*eventqueue.CanvasID, error) {
	flag := cmd.Flags().Lookup("canvas")
	if !flag.Changed {
		return nil, nil
	}
	canvas, err := parseCanvas(flag.Value.String())
	if err != nil {
		return nil, err
	}
	return &canvas, nil
}

func parseCanvas(text string) (eventqueue.CanvasID, error) {
	canvas, err := eventqueue.ParseCanvasID(text)
	if err == nil && canvas == (eventqueue.CanvasID{}) {
		err = errors.New("canvas_id: is missing: the zero uuid names no canvas")
	}
	if err != nil {
		return canvas, badInput(err)
	}
	return canvas, nil
}
