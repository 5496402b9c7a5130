package eventctl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
)

func retryCommand(p *program) *cobra.Command {
	var all, silent bool
	cmd := &cobra.Command{
		Use:   "retry {ID… | filter {--dry-run | --yes} | --all --canvas … --module … --name …} [--value …]",
		Short: "Move failed and cancelled events from event_log back into the queue",
		Long: "Move failed and cancelled events back into the queue: under the same id, due now, and with all of their retries\n" +
			"again. Completed events are refused. Of several ids, those that can be moved are; the exit status\n" +
			"is 3 if any of them was not. A filter needs --yes, or --dry-run, which counts; it moves the events\n" +
			"that had failed when it began, or those that were cancelled, with --status cancelled. --all is --yes for\n" +
			"one handler. With --value, --attribute, --no-attributes, --delay or --delay-until the events are\n" +
			"changed as they move.",
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
		var edit operate.Edit
		if edits.any() {
			config, err := p.config()
			if err != nil {
				return err
			}
			if edit, err = edits.edit(p, config); err != nil {
				return err
			}
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			retrier, err := operate.NewRetrier(c.store, c.queue)
			if err != nil {
				return failed(err)
			}
			if filters.given {
				return p.retrySelected(cmd.Context(), retrier, filter, edit, filters.dryRun)
			}
			return p.retryIDs(cmd.Context(), ids, func(ctx context.Context, batch []eventqueue.EventID) ([]operate.Retried, error) {
				if edits.any() {
					return retrier.RetryEdited(ctx, edit, batch...)
				}
				return retrier.Retry(ctx, batch...)
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
		if !f.changed(name) {
			return badInput(fmt.Errorf("--all needs --%s: give --canvas, --module and --name", name))
		}
	}
	f.approved = true
	return nil
}

// retriedDoc is the result of retry.
type retriedDoc struct {
	// DryRun says that Retried is how many would be moved.
	DryRun  bool      `json:"dry_run,omitempty"`
	Retried int       `json:"retried"`
	Refused []refusal `json:"refused"`
}

func (p *program) writeRetried(doc retriedDoc) error {
	verb := "moved"
	if doc.DryRun {
		verb = "would move"
	}
	return p.writeLine(doc, fmt.Sprintf("%s %s back into the queue", verb, printing.Plural(doc.Retried, "event")))
}

func (p *program) retryIDs(ctx context.Context, ids []eventqueue.EventID, retry func(ctx context.Context, batch []eventqueue.EventID) ([]operate.Retried, error)) error {
	doc := retriedDoc{Refused: []refusal{}}
	for batch := range slices.Chunk(ids, operate.MaxRetryEvents) {
		results, err := toTheEnd(ctx, func(ctx context.Context) ([]operate.Retried, error) { return retry(ctx, batch) })
		if err != nil {
			return p.retryFailed(doc, err)
		}
		for _, r := range results {
			if r.Result == operate.RetryMoved {
				doc.Retried++
				continue
			}
			doc.Refused = append(doc.Refused, refusal{r.ID, retryRefusal(r)})
		}
	}
	return errors.Join(refusedError("not retried", doc.Refused), p.writeRetried(doc))
}

func (p *program) retrySelected(ctx context.Context, retrier *operate.Retrier, filter operate.EventFilter, edit operate.Edit, dryRun bool) error {
	doc := retriedDoc{DryRun: dryRun, Refused: []refusal{}}
	var err error
	if dryRun {
		doc.Retried, err = retrier.CountLogged(ctx, filter)
	} else {
		var done operate.RetriedAll
		done, err = retrier.RetryAll(ctx, filter, edit)
		doc.Retried = done.Moved
		for _, r := range done.FirstRefused {
			doc.Refused = append(doc.Refused, refusal{r.ID, retryRefusal(r)})
		}
	}
	if err != nil {
		return p.retryFailed(doc, err)
	}
	return errors.Join(refusedError("not retried", doc.Refused), p.writeRetried(doc))
}

// retryFailed reports the events that were moved before a failure.
func (p *program) retryFailed(doc retriedDoc, err error) error {
	return errors.Join(failed(fmt.Errorf("%s moved, and then: %w", printing.Plural(doc.Retried, "event"), err)), p.writeRetried(doc))
}

func retryRefusal(r operate.Retried) string {
	switch r.Result {
	case operate.RetryQueued:
		return "is not failed, or already back in the queue"
	case operate.RetryCompleted:
		return "has completed: emit a new event to have it done again"
	case operate.RetryOutdated:
		return "has been changed since it was read"
	case operate.RetryRefused:
		return databaseRefuses(r.Err)
	default:
		return "is neither in event_log nor in the queue"
	}
}
