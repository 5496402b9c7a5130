package eventctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/humantime"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func showCronCommand(p *program) *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use:   "show --canvas … --name …",
		Short: "Show a cron definition and its next slots",
		Long: "Show a cron definition and its next slots, in its time zone; for one that is disabled they are those\n" +
			"that it would have.",
		Example: "  eventctl cron show --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --name nightly --count 3",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().IntVar(&n, "count", 5, fmt.Sprintf("show `n` slots, from 1 to %d", cronchecker.MaxNext))
	p.addDefinition(cmd, func(ctx context.Context, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID, name string) error {
		d, slots, err := definitions.Preview(ctx, canvas, name, time.Time{}, n)
		if err != nil {
			return failed(err)
		}
		records, err := definitions.Records(ctx, []cronchecker.CronID{d.ID}, recordsShown)
		if err != nil {
			return failed(err)
		}
		return p.writeDefinition(view.CronOf(d, records[d.ID]), view.All(slots, view.SlotOf), view.All(records[d.ID], view.PassedSlotOf))
	})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if n < 1 || n > cronchecker.MaxNext {
			return badInput(fmt.Errorf("--count is %d: it must be from 1 to %d", n, cronchecker.MaxNext))
		}
		return nil
	}
	return cmd
}

// recordsShown is how many slots that have passed are shown of a definition, to say which were skipped.
const recordsShown = 5

func (p *program) writeDefinition(c view.Cron, next, last []view.Slot) error {
	doc := struct {
		view.Cron
		Next []view.Slot `json:"next_slots"`
		Last []view.Slot `json:"last_slots"`
	}{c, next, last}
	rows := factRows("name", c.Name, "canvas", c.Canvas, "schedule", c.Schedule, "time zone", c.TimeZone, "missed", c.Missed, "enabled", c.EnabledText(),
		"skip if", cmp.Or(c.SkipsText(), "-"), "last slot", cmp.Or(c.LastSlotText(), "-"))
	for _, s := range last {
		if s.Skipped != "" {
			rows = append(rows, factRows("skipped", humantime.Time(s.Slot)+", since "+s.SkippedText())...)
		}
	}
	for _, s := range next {
		rows = append(rows, factRows("next slot", s.Local)...)
	}
	return p.write(doc, func(w io.Writer) { printing.Table(w, rows) })
}
