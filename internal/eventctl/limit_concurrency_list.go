package eventctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

func listConcurrencyLimitsCommand(p *program) *cobra.Command {
	var canvas string
	cmd := &cobra.Command{
		Use:     "list --canvas …",
		Short:   "List the concurrency limits of a canvas",
		Long:    "List the limits of how many events of a canvas, of its handlers and of its ordering keys run at once.",
		Example: "  eventctl limit concurrency list --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&canvas, "canvas", "", canvasUsage)
	require(cmd, "canvas")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		id, err := parseCanvas(canvas)
		if err != nil {
			return err
		}
		return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
			limits, err := store.ConcurrencyLimits(cmd.Context(), id)
			if err != nil {
				return failed(fmt.Errorf("list the concurrency limits of canvas %s: %w", id, err))
			}
			return writeList(p, view.ListOf(limits, view.ConcurrencyLimitOf), "concurrency limits", "MAX  OF", func(l view.ConcurrencyLimit) []any {
				return []any{l.MaxRunning, l.ConcurrencyTarget}
			})
		})
	}
	return cmd
}
