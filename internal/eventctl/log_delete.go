package eventctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
)

// deletedLogDoc is the result of log delete.
type deletedLogDoc struct {
	DryRun bool `json:"dry_run"`
	// Events is how many were deleted, or for a dry run would be deleted.
	Events int `json:"events"`
}

func (d deletedLogDoc) text() string {
	verb := "deleted"
	if d.DryRun {
		verb = "would delete"
	}
	return fmt.Sprintf("%s %s from event_log", verb, printing.Plural(d.Events, "event"))
}

func deleteLogCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete filter {--dry-run | --yes}",
		Short: "Delete failed or cancelled events from event_log by a filter",
		Long: "Delete failed events from event_log, or cancelled ones with --status cancelled, that a filter selects\n" +
			"and that were there when it began. They cannot be retried any more. It uses small transactions, so it\n" +
			"may run at any time, and be interrupted. eventctl log prune deletes by age alone.",
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
		return p.withStore(cmd.Context(), func(store *pgstore.Store, config setup.Config) error {
			queue, err := silentQueue(store, config.Limits())
			if err != nil {
				return failed(err)
			}
			retrier, err := operate.NewRetrier(store, queue)
			if err != nil {
				return failed(err)
			}
			doc := deletedLogDoc{DryRun: filters.dryRun}
			if doc.DryRun {
				doc.Events, err = retrier.CountLogged(cmd.Context(), filter)
			} else {
				doc.Events, err = retrier.DeleteLogged(cmd.Context(), filter)
			}
			if err != nil {
				return errors.Join(failed(fmt.Errorf("%s, and then: %w", doc.text(), interrupted(cmd.Context(), err))), p.writeLine(doc, doc.text()))
			}
			return p.writeLine(doc, doc.text())
		})
	}
	return cmd
}
