package eventctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/printing"
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
		slots, err := definitions.Next(ctx, canvas, name, n)
		if err != nil {
			return failed(err)
		}
		list, err := definitions.List(ctx, &canvas)
		if err != nil {
			return failed(err)
		}
		at := slices.IndexFunc(list, func(d cronchecker.Definition) bool { return d.Name == name })
		if at < 0 {
			return notFound("the cron definition %q was removed at this moment", name)
		}
		records, err := definitions.Records(ctx, []cronchecker.CronID{list[at].ID}, recordsShown)
		if err != nil {
			return failed(err)
		}
		return p.writeDefinition(list[at], slots, records[list[at].ID])
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

// slotDoc is a slot that was skipped.
type slotDoc struct {
	Slot    time.Time        `json:"slot"`
	Skipped cronchecker.Skip `json:"skipped"`
}

func (p *program) writeDefinition(d cronchecker.Definition, slots []time.Time, records []cronchecker.Record) error {
	var skipped []slotDoc
	for _, r := range records {
		if r.Skipped != "" {
			skipped = append(skipped, slotDoc{r.Slot.UTC(), r.Skipped})
		}
	}
	next := rowsOf(slots, func(slot time.Time) string { return slot.Format(time.RFC3339) })
	doc := struct {
		cronDoc
		Next    []string  `json:"next_slots"`
		Skipped []slotDoc `json:"skipped_slots,omitempty"`
	}{cronDocOf(d), next, skipped}
	rows := [][]string{
		{"name", printing.Printable(d.Name)},
		{"canvas", d.Canvas.String()},
		{"schedule", printing.Printable(d.Schedule)},
		{"time zone", printing.Printable(d.TimeZone)},
		{"missed", string(d.Missed)},
		{"enabled", enabledText(d)},
		{"skip if", skipsText(d)},
		{"last slot", lastSlotText(d, records)},
	}
	for _, s := range skipped {
		rows = append(rows, []string{"skipped", printing.Time(s.Slot) + ", since it was " + map[cronchecker.Skip]string{cronchecker.SkippedPaused: "paused or blocked", cronchecker.SkippedRunning: "running or waiting still"}[s.Skipped]})
	}
	for _, slot := range next {
		rows = append(rows, []string{"next slot", slot})
	}
	return p.write(doc, func(w io.Writer) { printing.Table(w, rows) })
}
