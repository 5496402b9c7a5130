package eventctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

func nameCanvasCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "name CANVAS NAME",
		Short: "Name a canvas, for people",
		Long: "Give a canvas a name, in place of the one that it has. The dashboard shows it, and takes it where it takes a\n" +
			"canvas, as --canvas does. No two canvases have the same name; upper and lower case differ. Applications may\n" +
			"write the table canvas_names themselves.",
		Example: "  eventctl canvas name 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 \"Acme Ltd\"",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			canvas, err := p.canvasArgument(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			name := operate.CanvasName{Canvas: canvas, Name: args[1]}
			if err := name.Validate(); err != nil {
				return badInput(err)
			}
			return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
				err := store.As(actor(store)).NameCanvas(cmd.Context(), name)
				switch {
				case errors.Is(err, operate.ErrCanvasNameTaken):
					return badInput(fmt.Errorf("name %q: %w", name.Name, err))
				case err != nil:
					return failed(fmt.Errorf("name canvas %s: %w", canvas, err))
				default:
					return p.writeLine(view.CanvasNameOf(name), fmt.Sprintf("named canvas %s %s", canvas, name.Name))
				}
			})
		},
	}
}

func unnameCanvasCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "unname CANVAS",
		Short:   "Take the name of a canvas away",
		Long:    "Take the name of a canvas away; the canvas, and all that is on it, stays. The exit status is 3 if it had no name.",
		Example: "  eventctl canvas unname 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			canvas, err := p.canvasArgument(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
				had, err := store.As(actor(store)).UnnameCanvas(cmd.Context(), canvas)
				switch {
				case err != nil:
					return failed(fmt.Errorf("take the name of canvas %s away: %w", canvas, err))
				case !had:
					return notFound("canvas %s has no name", canvas)
				default:
					return p.writeLine(view.CanvasName{Canvas: canvas}, fmt.Sprintf("canvas %s has no name any more", canvas))
				}
			})
		},
	}
}
