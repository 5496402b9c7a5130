package eventctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
)

// scopeFlags are --canvas, --module and --name.
type scopeFlags struct {
	cmd                  *cobra.Command
	canvas, module, name string
}

// scopeUsage has the help texts of these flags.
type scopeUsage struct{ canvas, module, name string }

func addScopeFlags(cmd *cobra.Command, usage scopeUsage) *scopeFlags {
	f := &scopeFlags{cmd: cmd}
	cmd.Flags().StringVar(&f.canvas, "canvas", "", usage.canvas)
	cmd.Flags().StringVar(&f.module, "module", "", usage.module)
	cmd.Flags().StringVar(&f.name, "name", "", usage.name)
	return f
}

// addScope gives a command the flags that name one handler on a canvas.
func addScope(cmd *cobra.Command) *scopeFlags {
	f := addScopeFlags(cmd, scopeUsage{canvasUsage, "module of the handler", "name of the handler"})
	require(cmd, "canvas", "module", "name")
	return f
}

// addLimitScope gives a command the flags that name the scope of a limit: a handler on a
// canvas or, without a handler, the whole canvas.
func addLimitScope(cmd *cobra.Command) *scopeFlags {
	f := addScopeFlags(cmd, scopeUsage{canvasUsage, "only of the handler in this module", "only of the handler of this name"})
	require(cmd, "canvas")
	cmd.MarkFlagsRequiredTogether("module", "name")
	return f
}

// addFilter gives a command the flags of a scope as a filter.
func addFilter(cmd *cobra.Command) *scopeFlags {
	return addScopeFlags(cmd, scopeUsage{canvasFilterUsage, "only handlers in this module", "only handlers of this name"})
}

// addCanvasFilter gives a command --canvas as a filter.
func addCanvasFilter(cmd *cobra.Command) {
	cmd.Flags().String("canvas", "", canvasFilterUsage)
}

// has reports whether one of the flags is given, or EVENTS_CANVAS in place of --canvas.
func (f *scopeFlags) has(name string) bool {
	return f.cmd.Flags().Changed(name) || name == "canvas" && f.canvas != ""
}

// scope returns the scope that the flags name.
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

// ruleScopeFlags name what a rule is about.
type ruleScopeFlags struct {
	of               *scopeFlags
	prefix, modifier string
}

// addRuleScope gives a command the flags of what a rule is about.
func addRuleScope(cmd *cobra.Command) *ruleScopeFlags {
	f := &ruleScopeFlags{of: addScopeFlags(cmd, scopeUsage{canvasUsage, "module of the handler", "name of the handler"})}
	cmd.Flags().StringVar(&f.prefix, "prefix", "", "instead of --name: all handlers of the module whose names begin with this `text`")
	cmd.Flags().StringVar(&f.modifier, "modifier", "", "only with this modifier (default: with any)")
	require(cmd, "canvas", "module")
	cmd.MarkFlagsOneRequired("name", "prefix")
	cmd.MarkFlagsMutuallyExclusive("name", "prefix")
	return f
}

// scope returns what the flags name. A flag that is given and empty, as from an unset variable of a
// script, is refused: it would hold back or let run more than is meant.
func (f *ruleScopeFlags) scope() (scope operate.RuleScope, err error) {
	flags := f.of.cmd.Flags()
	if scope.Prefix = flags.Changed("prefix"); scope.Prefix {
		if err := eventqueue.CheckName(f.prefix); err != nil {
			return scope, badInput(fmt.Errorf("--prefix: %w", err))
		}
		f.of.name = f.prefix
	}
	if flags.Changed("modifier") {
		if err := eventqueue.CheckName(f.modifier); err != nil {
			return scope, badInput(fmt.Errorf("--modifier: %w", err))
		}
	}
	scope.Modifier = f.modifier
	scope.Scope, err = f.of.scope()
	return scope, err
}

// filter returns the filter that the flags describe. It refuses a flag that is given and
// empty, as from an unset variable of a script: it must not match everything.
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

// canvasFilter returns the canvas that --canvas names, or EVENTS_CANVAS; nil if neither is given.
func canvasFilter(cmd *cobra.Command) (*eventqueue.CanvasID, error) {
	flag := cmd.Flags().Lookup("canvas")
	if !flag.Changed && flag.Value.String() == "" {
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
