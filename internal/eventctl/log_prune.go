package eventctl

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

// prunedDoc is the result of log prune.
type prunedDoc struct {
	State     string       `json:"state"`
	OlderThan view.Seconds `json:"older_than_seconds"`
	DryRun    bool         `json:"dry_run"`
	// Events is how many entries were deleted, or for a dry run would be deleted.
	Events int `json:"events"`
}

func (d prunedDoc) text() string {
	verb := "deleted"
	if d.DryRun {
		verb = "would delete"
	}
	return fmt.Sprintf("%s %s from event_log", verb, printing.Plural(d.Events, d.State+" event"))
}

func pruneLogCommand(p *program) *cobra.Command {
	var text, olderThan string
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "prune --status … --older-than … {--dry-run | --yes}",
		Short: "Delete old history from event_log",
		Long: "Delete from event_log the events that ended with a status longer ago than a duration, by the\n" +
			"database's clock. It uses small transactions that delay no others, so it may run at any time, and\n" +
			"be interrupted. A failed event that is deleted cannot be retried. To have old history deleted all\n" +
			"the time, set HISTORY_COMPLETED_FOR and HISTORY_FAILED_FOR for cron.",
		Example: "  eventctl log prune --status completed --older-than 720h --dry-run\n" +
			"  eventctl log prune --status completed --older-than 720h --yes",
		Args: cobra.NoArgs,
	}
	addChoice(cmd, &text, "status", "", "events that ended with this `status`", logStatuses()...)
	cmd.Flags().StringVar(&olderThan, "older-than", "", "events that ended longer ago than this `duration`, as in 720h")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count what would be deleted")
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, delete them")
	require(cmd, "status", "older-than")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		status, err := parseStatus(text)
		if err != nil {
			return err
		}
		age, err := time.ParseDuration(olderThan)
		if err != nil || age < 0 {
			return badInput(fmt.Errorf("--older-than %q is not a duration: write it like 90m or 720h; 0s is all", olderThan))
		}
		if dryRun == yes {
			return badInput(errors.New("log prune deletes history for good: give --yes if that is meant, or --dry-run to count it, not both"))
		}
		return p.prune(cmd, status, age, prunedDoc{view.EndState(status), view.Seconds(age.Seconds()), dryRun, 0})
	}
	return cmd
}

// prune reports the deleted entries even if an error follows.
func (p *program) prune(cmd *cobra.Command, status maintenance.LogStatus, age time.Duration, doc prunedDoc) error {
	return p.withStore(cmd.Context(), func(store *pgstore.Store, config setup.Config) error {
		pruner, err := maintenance.NewPruner(store, maintenance.PrunerConfig{PerSecond: config.HistoryPerSecond})
		if err != nil {
			return failed(err)
		}
		if doc.DryRun {
			doc.Events, err = pruner.Count(cmd.Context(), status, age)
		} else {
			doc.Events, err = pruner.Prune(cmd.Context(), status, age)
		}
		if err != nil {
			return errors.Join(failed(fmt.Errorf("%s, and then: %w", doc.text(), err)), p.writeLine(doc, doc.text()))
		}
		return p.writeLine(doc, doc.text())
	})
}
