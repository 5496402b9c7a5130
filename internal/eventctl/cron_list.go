package eventctl

import (
	"io"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/internal/printing"
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
			records, err := definitions.Records(cmd.Context(), rowsOf(list, func(d cronchecker.Definition) cronchecker.CronID { return d.ID }), 1)
			if err != nil {
				return failed(err)
			}
			return p.writeDefinitions(list, records)
		})
	}
	return cmd
}

func (p *program) writeDefinitions(list []cronchecker.Definition, records map[cronchecker.CronID][]cronchecker.Record) error {
	doc := struct {
		Definitions []cronDoc `json:"definitions"`
	}{rowsOf(list, cronDocOf)}
	rows := tableOf(list, []string{"CANVAS", "NAME", "SCHEDULE", "TIME ZONE", "MISSED", "ENABLED", "SKIP", "LAST SLOT"}, func(d cronchecker.Definition) []string {
		return []string{d.Canvas.String(), printing.Printable(d.Name), printing.Printable(d.Schedule), printing.Printable(d.TimeZone),
			string(d.Missed), enabledText(d), skipsText(d), lastSlotText(d, records[d.ID])}
	})
	return p.write(doc, func(w io.Writer) { printing.List(w, rows, "cron definitions") })
}

func enabledText(d cronchecker.Definition) string {
	if d.Enabled {
		return "yes"
	}
	return "no"
}

// skipsText is when slots are skipped.
func skipsText(d cronchecker.Definition) string {
	switch {
	case d.SkipIfPaused && d.SkipIfRunning:
		return "paused, running"
	case d.SkipIfPaused:
		return "paused"
	case d.SkipIfRunning:
		return "running"
	default:
		return "-"
	}
}

// lastSlotText is the last slot, and whether the newest record says that it was skipped.
func lastSlotText(d cronchecker.Definition, newest []cronchecker.Record) string {
	if d.LastSlot.IsZero() {
		return "-"
	}
	text := printing.Time(d.LastSlot)
	if len(newest) > 0 && newest[0].Skipped != "" {
		text += " (skipped: " + string(newest[0].Skipped) + ")"
	}
	return text
}
