package eventctl

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func logGroupsCommand(p *program) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "List failed events by handler and error, the largest groups first",
		Long: "List failed events by handler and error, the largest groups first. Errors that differ in numbers and\n" +
			"UUIDs only are in one group, and have # in their place. With --error-group, the commands log list, log\n" +
			"delete and retry are about the events of a group. More than 100,000 failed events are not all grouped,\n" +
			"but those that failed last.",
		Example: "  eventctl log groups --newer-than 24h\n" +
			"  eventctl log groups --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --json",
		Args: cobra.NoArgs,
	}
	flags := addLogFilter(cmd)
	addLimit(cmd, &limit)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if err := checkLimit(limit); err != nil {
			return err
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			found, err := reader.FailureGroups(cmd.Context(), filter, limit)
			if err != nil {
				return failed(fmt.Errorf("group the failed events: %w", err))
			}
			groups := view.FailureGroupsOf(found)
			return p.write(groups, func(w io.Writer) {
				printing.List(w, tableOf(groups.Items, "EVENTS  NEWEST  MODULE  NAME  CANVAS  ERROR GROUP", func(g view.FailureGroup) []any {
					return []any{g.Count, g.Newest, g.Module, g.Name, g.Canvas, g.ErrorGroup}
				}), "failed events")
				if groups.More > 0 {
					_, _ = fmt.Fprintf(w, "%s not shown: add --limit\n", printing.Plural(groups.More, "smaller group"))
				}
				if groups.Bounded {
					_, _ = fmt.Fprintf(w, "these are of the %d events that failed last; there are more\n", inspect.MostGrouped)
				}
			})
		})
	}
	return cmd
}
