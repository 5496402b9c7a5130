package eventctl

import (
	"io"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/internal/printing"
)

func listCronCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List cron definitions",
		Long:    "List the cron definitions, by canvas and name. LAST SLOT is the last one for which an event was emitted.",
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
			return p.writeDefinitions(list)
		})
	}
	return cmd
}

func (p *program) writeDefinitions(list []cronchecker.Definition) error {
	doc := struct {
		Definitions []cronDoc `json:"definitions"`
	}{rowsOf(list, cronDocOf)}
	rows := tableOf(list, []string{"CANVAS", "NAME", "SCHEDULE", "TIME ZONE", "MISSED", "ENABLED", "LAST SLOT"}, func(d cronchecker.Definition) []string {
		return []string{d.Canvas.String(), printing.Printable(d.Name), printing.Printable(d.Schedule), printing.Printable(d.TimeZone),
			string(d.Missed), enabledText(d), lastSlotText(d)}
	})
	return p.write(doc, func(w io.Writer) { printing.List(w, rows, "cron definitions") })
}

func enabledText(d cronchecker.Definition) string {
	if d.Enabled {
		return "yes"
	}
	return "no"
}

func lastSlotText(d cronchecker.Definition) string {
	if d.LastSlot.IsZero() {
		return "-"
	}
	return printing.Time(d.LastSlot)
}
