package eventctl

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func listCanvasesCommand(p *program) *cobra.Command {
	var limit int
	var after string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the canvases that have a name",
		Long:    "List the canvases that have a name, by their names. Others do not show here, whatever there is on them.",
		Example: "  eventctl canvas list",
		Args:    cobra.NoArgs,
	}
	addLimit(cmd, &limit)
	cmd.Flags().StringVar(&after, "after", "", "begin after this `name`, the last one of the previous page")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkLimit(limit); err != nil {
			return err
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			found, err := reader.ListCanvasNames(cmd.Context(), after, limit)
			if err != nil {
				return failed(fmt.Errorf("list the names of canvases: %w", err))
			}
			list := view.CanvasNamesOf(found, limit)
			return p.write(list, func(w io.Writer) {
				printing.List(w, tableOf(list.Items, "CANVAS  NAME", func(n view.CanvasName) []any { return []any{n.Canvas, n.Name} }), "names of canvases")
				if list.Next != "" {
					_, _ = fmt.Fprintf(w, "there may be more: add --after %q\n", list.Next)
				}
			})
		})
	}
	return cmd
}
