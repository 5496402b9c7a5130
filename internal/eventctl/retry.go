package eventctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

func retryCommand(p *program) *cobra.Command {
	var all, silent bool
	cmd := &cobra.Command{
		Use:   "retry {ID… | filter {--dry-run | --yes} | --resume OPERATION | --all --canvas … --module … --name …} [--value …]",
		Short: "Move failed and cancelled events from event_log back into the queue",
		Long: "Move failed and cancelled events back into the queue: under the same id, due now, and with all of their retries\n" +
			"again. Completed events are refused. Of several ids, those that can be moved are; the exit status\n" +
			"is 3 if any of them was not. A filter needs --yes, or --dry-run, which counts; it moves the events\n" +
			"that had failed when it began, or those that were cancelled, with --status cancelled. --all is --yes for\n" +
			"one handler. With --value, --attribute, --no-attributes, --delay or --delay-until the events are\n" +
			"changed as they move. An interrupt stops it, and --resume goes on.",
		Example: "  eventctl retry 17 18\n" +
			"  eventctl retry 17 --value '{\"order\": 2}'\n" +
			"  eventctl retry --all --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed\n" +
			"  eventctl retry --error 'connection refused' --newer-than 2h --dry-run",
		Args: cobra.ArbitraryArgs,
	}
	of := loggedEvents("where-attribute")
	of.ids = "the ids of failed events, --all with --canvas, --module and --name, or a filter"
	filters := addEventFilter(cmd, of)
	cmd.Flags().BoolVar(&all, "all", false, "all failed events of one handler")
	edits := addEdit(cmd)
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := filters.allOfOne(all, args); err != nil {
			return err
		}
		ids, filter, err := filters.what(args)
		if err != nil {
			return err
		}
		edit, err := edits.edit(p)
		if err != nil {
			return err
		}
		if filters.many() {
			return p.changeMany(cmd.Context(), filters, operate.Change{Verb: operate.VerbRetry, Filter: filter, Edit: edit}, silent)
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			return p.changeIDs(cmd.Context(), c, operate.VerbRetry, ids, func(ctx context.Context, changer *operate.Changer, ids []eventqueue.EventID) ([]operate.Changed, error) {
				return changer.RetryEdited(ctx, edit, ids...)
			})
		})
	}
	return cmd
}

// allOfOne checks --all, which approves of a filter for one handler.
func (f *eventFilterFlags) allOfOne(all bool, args []string) error {
	if !all {
		return nil
	}
	if len(args) > 0 {
		return badInput(errors.New("--all and ids exclude each other: give one of them"))
	}
	for _, name := range []string{"canvas", "module", "name"} {
		if !f.scope.has(name) {
			return badInput(fmt.Errorf("--all needs --%s: give --canvas, --module and --name", name))
		}
	}
	f.approved = true
	return nil
}
