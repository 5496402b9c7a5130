package eventctl

import (
	"context"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

func requeueCommand(p *program) *cobra.Command {
	var silent bool
	cmd := &cobra.Command{
		Use:   "requeue {ID… | filter {--dry-run | --yes} | --resume OPERATION}",
		Short: "Make queued events due now: end their delays, clear expired locks, and notify",
		Long: "Make events due now that have not ended: end their delays, clear expired locks, and publish a\n" +
			"notification for each. A running event is refused, since it would run twice. A failed event can be\n" +
			"retried (eventctl retry); a completed one never runs again. A rule still holds its events back. Of\n" +
			"several ids, those that can be requeued are; the exit status is 3 if any of them was refused. A\n" +
			"filter needs --yes, or --dry-run, which counts; events that run are left. An interrupt stops it, and --resume goes on.",
		Example: "  eventctl requeue 17 18\n" +
			"  eventctl requeue --name order_placed --state delayed --yes",
		Args: cobra.ArbitraryArgs,
	}
	filters := addEventFilter(cmd, queuedEvents("attribute"))
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, filter, err := filters.what(args)
		if err != nil {
			return err
		}
		if filters.many() {
			return p.changeMany(cmd.Context(), filters, operate.Change{Verb: operate.VerbRun, Filter: filter}, silent)
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			return p.changeIDs(cmd.Context(), c, operate.VerbRun, ids, func(ctx context.Context, changer *operate.Changer, ids []eventqueue.EventID) ([]operate.Changed, error) {
				return changer.Requeue(ctx, ids...)
			})
		})
	}
	return cmd
}
