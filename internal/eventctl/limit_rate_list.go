package eventctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

func listRateLimitsCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List rate limits, and what has been counted of them",
		Long: "List the rate limits, and what has been counted in the current minute and on the current day.\n" +
			"LATER is an estimate of how many events wait for a later minute or day.",
		Example: "  eventctl limit rate list --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args:    cobra.NoArgs,
	}
	addCanvasFilter(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		only, err := canvasFilter(cmd)
		if err != nil {
			return err
		}
		return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
			all, err := store.RateLimits(cmd.Context(), only)
			if err != nil {
				return failed(fmt.Errorf("list the rate limits: %w", err))
			}
			return writeList(p, view.ListOf(all, view.RateStatusOf), "rate limits", "CANVAS  MODULE  NAME  MINUTE  DAY  MODE  LATER", func(l view.RateStatus) []any {
				return []any{l.Canvas, l.Module, l.Name, l.Minute, l.Day, l.Mode, l.Waiting}
			})
		})
	}
	return cmd
}
