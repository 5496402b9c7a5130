package eventctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
)

// The help texts of --canvas.
const (
	canvasUsage       = "uuid or name of the `canvas` (default: EVENTS_CANVAS)"
	canvasFilterUsage = "only this `canvas`, by its uuid or name (default: EVENTS_CANVAS)"
)

// canvasVariable has the canvas of commands without --canvas.
const canvasVariable = "EVENTS_CANVAS"

// resolveCanvas puts uuids in place of the names of canvases that are given with --canvas, so that no command has to know of names. What is no
// name either is left to the command, which says so.
func (p *program) resolveCanvas(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup("canvas")
	if flag == nil {
		return nil
	}
	if !flag.Changed {
		return p.defaultCanvas(cmd)
	}
	list, isList := flag.Value.(interface {
		GetSlice() []string
		Replace(texts []string) error
	})
	texts := []string{flag.Value.String()}
	if isList {
		texts = list.GetSlice()
	}
	for i, text := range texts {
		if operate.CheckCanvasName(text) != nil {
			continue // a uuid, or no name
		}
		canvas, err := p.canvasNamed(cmd.Context(), text)
		if err != nil {
			return err
		}
		texts[i] = canvas.String()
	}
	if isList {
		return list.Replace(texts)
	}
	return flag.Value.Set(texts[0])
}

// defaultCanvas gives --canvas the value of EVENTS_CANVAS. Only where the flag is required it then counts as given: elsewhere
// a command whose flags exclude --canvas works as without the variable, and one that changes many events still wants a filter.
func (p *program) defaultCanvas(cmd *cobra.Command) error {
	text, flag := p.environment[canvasVariable], cmd.Flags().Lookup("canvas")
	if text == "" || flag.Value.Type() != "string" { // a list of canvases is no place for one that nobody has named
		return nil
	}
	canvas, err := p.canvasArgument(cmd.Context(), text)
	if err != nil {
		return fmt.Errorf("%s: %w", canvasVariable, err)
	}
	_, flag.Changed = flag.Annotations[cobra.BashCompOneRequiredFlag]
	return flag.Value.Set(canvas.String())
}

// canvasNamed returns the canvas that has a name.
func (p *program) canvasNamed(ctx context.Context, name string) (eventqueue.CanvasID, error) {
	var found *eventqueue.CanvasID
	err := p.withReader(ctx, func(reader *inspect.Reader) (err error) {
		found, err = reader.CanvasNamed(ctx, name)
		return failed(err)
	})
	switch {
	case err != nil:
		return eventqueue.CanvasID{}, fmt.Errorf("canvas_id %q is not a uuid, and it cannot be looked up as a name: %w", name, err)
	case found == nil:
		return eventqueue.CanvasID{}, badInput(fmt.Errorf("canvas_id %q is not a uuid, and no canvas has this name: see eventctl canvas list", name))
	default:
		return *found, nil
	}
}

// canvasArgument reads a canvas that is an argument: its uuid, or the name that it has.
func (p *program) canvasArgument(ctx context.Context, text string) (eventqueue.CanvasID, error) {
	if operate.CheckCanvasName(text) == nil {
		return p.canvasNamed(ctx, text)
	}
	return parseCanvas(text)
}
