package eventctl

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// maxPreview is the largest --count of a preview.
const maxPreview = 100

func previewCronCommand(p *program) *cobra.Command {
	var schedule, zone, after string
	var n int
	cmd := &cobra.Command{
		Use:   "preview {--schedule … [--time-zone …] | --canvas … --name …}",
		Short: "Show the next slots of a schedule, and what changes of the clock do to them",
		Long: "Show a schedule in words, and its next slots in its time zone and in UTC. Where a change of the clock\n" +
			"moves, joins, repeats or leaves out times of the schedule, a sentence says so. A schedule needs no\n" +
			"database; of a definition the database has it. For a definition that is disabled the slots are those\n" +
			"that it would have.",
		Example: "  eventctl cron preview --schedule \"30 2 * * *\" --time-zone Europe/Berlin --after 2030-03-29T12:00:00Z\n" +
			"  eventctl cron preview --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --name nightly --count 10",
		Args: cobra.NoArgs,
	}
	key := addOptionalCronKey(cmd)
	cmd.Flags().StringVar(&schedule, "schedule", "", "when the slots are, as for cron set")
	cmd.Flags().StringVar(&zone, "time-zone", "UTC", "IANA `zone` whose clock counts, such as Europe/Berlin")
	cmd.Flags().IntVar(&n, "count", 5, fmt.Sprintf("show `n` slots, from 1 to %d", maxPreview))
	cmd.Flags().StringVar(&after, "after", "", "show the slots after this `time`, not after now, as in 2030-01-31T09:00:00Z")
	cmd.MarkFlagsOneRequired("schedule", "name")
	for _, flag := range []string{"canvas", "name"} {
		cmd.MarkFlagsMutuallyExclusive("schedule", flag)
		cmd.MarkFlagsMutuallyExclusive("time-zone", flag)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if n < 1 || n > maxPreview {
			return badInput(fmt.Errorf("--count is %d: it must be from 1 to %d", n, maxPreview))
		}
		if err := checkGiven(cmd, "time-zone"); err != nil {
			return err
		}
		var from time.Time
		if cmd.Flags().Changed("after") {
			var err error
			if from, err = time.Parse(time.RFC3339, after); err != nil {
				return badInput(fmt.Errorf("--after %q is not a time: write it like 2030-01-31T09:00:00Z", after))
			}
		}
		if cmd.Flags().Changed("name") {
			return p.previewDefinition(cmd, key, from, n)
		}
		parsed, err := cronchecker.ParseSchedule(schedule, zone)
		if err != nil {
			return badInput(err)
		}
		if from.IsZero() {
			from = time.Now()
		}
		return p.writePreview(cronchecker.Definition{Schedule: parsed.String(), TimeZone: parsed.Zone().String()}, parsed.Preview(from, n))
	}
	return cmd
}

func (p *program) previewDefinition(cmd *cobra.Command, key *cronKey, after time.Time, n int) error {
	if key.canvas == "" && !cmd.Flags().Changed("canvas") {
		return badInput(errors.New("--canvas is missing: give --canvas and --name for a definition, or --schedule"))
	}
	canvas, err := key.parse()
	if err != nil {
		return err
	}
	return p.withDefinitions(cmd.Context(), func(definitions *cronchecker.Definitions) error {
		d, slots, err := definitions.Preview(cmd.Context(), canvas, key.name, after, n)
		if err != nil {
			return failed(err)
		}
		return p.writePreview(d, slots)
	})
}

// writePreview writes the slots of a schedule, or of a definition, which has an id.
func (p *program) writePreview(d cronchecker.Definition, slots []cronchecker.PreviewedSlot) error {
	c := view.CronOf(d, nil)
	list := view.All(slots, view.SlotOf)
	doc := struct {
		Definition *view.Cron  `json:"definition,omitempty"`
		Schedule   string      `json:"schedule"`
		Words      string      `json:"words"`
		TimeZone   string      `json:"time_zone"`
		Items      []view.Slot `json:"items"`
	}{nil, c.Schedule, c.Words(), c.TimeZone, list}
	heading := factRows("schedule", c.Schedule, "in words", c.Words(), "time zone", c.TimeZone)
	if c.ID != 0 {
		doc.Definition = &c
		heading = append(heading, factRows("enabled", c.EnabledText())...)
	}
	return p.write(doc, func(w io.Writer) {
		printing.Table(w, heading)
		_, _ = fmt.Fprintln(w)
		printing.Table(w, tableOf(list, "LOCAL TIME  UTC  CLOCK CHANGE", func(s view.Slot) []any { return []any{s.Local, s.Slot, s.Note} }))
	})
}
