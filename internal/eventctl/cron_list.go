package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/internal/view"
)

func listCronCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List cron definitions",
		Long: "List the cron definitions, by canvas and name. LAST SLOT is the last one for which an event was\n" +
			"emitted, or that was skipped, and SKIP when slots are skipped.",
		Example: "  eventctl cron list --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args:    cobra.NoArgs,
	}
	addCanvasFilter(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		only, err := canvasFilter(cmd)
		if err != nil {
			return err
		}
		return p.withDefinitions(cmd.Context(), func(definitions *cronchecker.Definitions) error {
			list, err := definitions.List(cmd.Context(), only)
			if err != nil {
				return failed(err)
			}
			records, err := definitions.Records(cmd.Context(), view.CronIDs(list), 1)
			if err != nil {
				return failed(err)
			}
			heading := "CANVAS  NAME  SCHEDULE  TIME ZONE  MISSED  ENABLED  SKIP  LAST SLOT"
			return writeList(p, view.CronsOf(list, records), "cron definitions", heading, func(c view.Cron) []any {
				return []any{c.Canvas, c.Name, c.Schedule, c.TimeZone, c.Missed, c.EnabledText(), c.SkipsText(), c.LastSlotText()}
			})
		})
	}
	return cmd
}
