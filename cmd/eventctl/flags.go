package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
)

// scopeFlags are --canvas, --module and --name.
type scopeFlags struct {
	cmd                  *cobra.Command
	canvas, module, name string
}

// addScope gives a command the flags of a scope, as the only one to name or as a
// filter.
func addScope(cmd *cobra.Command, required bool) *scopeFlags {
	f := &scopeFlags{cmd: cmd}
	only := "only "
	if required {
		only = ""
	}
	cmd.Flags().StringVar(&f.canvas, "canvas", "", only+"the canvas with this `uuid`")
	cmd.Flags().StringVar(&f.module, "module", "", only+"the handler in this module")
	cmd.Flags().StringVar(&f.name, "name", "", only+"the handler of this name")
	if required {
		require(cmd, "canvas", "module", "name")
	}
	return f
}

func require(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag does not exist
		}
	}
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
func (f *scopeFlags) filter() (filter pgstore.HandlerFilter, err error) {
	if filter.Canvas, err = onlyCanvas(f.cmd); err != nil {
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

// onlyCanvas is the canvas that a filter's --canvas names, nil when it is not given.
func onlyCanvas(cmd *cobra.Command) (*eventqueue.CanvasID, error) {
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

// maxPage is the largest --limit.
const maxPage = 10_000

// pageFlags are --limit and --after.
type pageFlags struct {
	limit int
	after int64
}

func addPage(cmd *cobra.Command) *pageFlags {
	p := &pageFlags{}
	cmd.Flags().IntVar(&p.limit, "limit", 50, fmt.Sprintf("show at most `n`, from 1 to %d", maxPage))
	cmd.Flags().Int64Var(&p.after, "after", 0, "go on behind the event with this `id`, the last one of the page before")
	return p
}

func (p *pageFlags) check() error {
	if p.limit < 1 || p.limit > maxPage {
		return badInput(fmt.Errorf("--limit is %d: it must be from 1 to %d", p.limit, maxPage))
	}
	if p.after < 0 {
		return badInput(fmt.Errorf("--after is %d: event ids are positive", p.after))
	}
	return nil
}

// next is the id for --after when a page is full, nil when nothing follows.
func (p *pageFlags) next(shown int, last func() eventqueue.EventID) *eventqueue.EventID {
	if shown < p.limit {
		return nil
	}
	return new(last())
}

func parseIDs(args []string) ([]eventqueue.EventID, error) {
	ids := make([]eventqueue.EventID, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, badInput(fmt.Errorf("%q is not the id of an event: ids are whole numbers from 1 on", arg))
		}
		ids[i] = eventqueue.EventID(id)
	}
	return ids, nil
}
