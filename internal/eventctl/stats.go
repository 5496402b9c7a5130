package eventctl

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

func statsCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count what waits, runs and failed, for each handler",
		Long: "Count the events of each handler that has any, or a rule, or failed or cancelled events in event_log. DEPTH is\n" +
			"how many have not ended; the states (see eventctl list --help) add up to it. OLDEST DUE is for\n" +
			"how long the oldest event that no worker runs has been due. FAILED and CANCELLED count event_log. This reads\n" +
			"both tables completely, unless --canvas is given.\n\n" +
			"With --since, show instead what programs have counted in that time, which reads no event: see\n" +
			"eventctl top --help.",
		Example: "  eventctl stats\n" +
			"  eventctl stats --since 1h\n" +
			"  eventctl stats --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --json",
		Args: cobra.NoArgs,
	}
	flags := addFilter(cmd)
	var since time.Duration
	cmd.Flags().DurationVar(&since, "since", 0, "show what was counted in the last `duration`, as in 1h")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("since") {
			return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
				return p.showMinutes(cmd.Context(), reader, filter, since)
			})
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			stats, err := reader.Stats(cmd.Context(), filter)
			if err != nil {
				return failed(fmt.Errorf("count the events: %w", err))
			}
			return p.writeStats(stats)
		})
	}
	return cmd
}

func (p *program) writeStats(stats []inspect.HandlerStats) error {
	heading := "CANVAS  MODULE  NAME  DEPTH"
	for _, state := range inspect.States() {
		heading += "  " + strings.ToUpper(string(state))
	}
	heading += "  OLDEST DUE  FAILED  CANCELLED"
	return writeList(p, view.ListOf(stats, view.StatsOf), "events, no rules, nothing failed", heading, func(s view.Stats) []any {
		row := []any{s.Canvas, s.Module, s.Name, s.Depth}
		for _, state := range inspect.States() {
			row = append(row, s.States[state])
		}
		return append(row, s.OldestDue.Age(), s.Failed, s.Cancelled)
	})
}
