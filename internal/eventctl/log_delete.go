package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
)

func deleteLogCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete {filter {--dry-run | --yes} | --resume OPERATION}",
		Short: "Delete failed or cancelled events from event_log by a filter",
		Long: "Delete failed events from event_log, or cancelled ones with --status cancelled, that a filter selects\n" +
			"and that were there when it began. They cannot be retried any more. It uses small transactions, so it\n" +
			"may run at any time. An interrupt stops it, and --resume goes on. eventctl log prune deletes by age alone.",
		Example: "  eventctl log delete --name order_placed --error 'no such order' --dry-run\n" +
			"  eventctl log delete --name order_placed --error 'no such order' --yes",
		Args: cobra.NoArgs,
	}
	of := loggedEvents("attribute")
	of.ids = "a filter, as with --canvas and --name, or --error"
	filters := addEventFilter(cmd, of)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, filter, err := filters.what(args)
		if err != nil {
			return err
		}
		return p.changeMany(cmd.Context(), filters, operate.Change{Verb: operate.VerbDeleteEnded, Filter: filter}, true)
	}
	return cmd
}
