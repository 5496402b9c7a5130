package eventctl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/internal/printing"
)

func retryCommand(p *program) *cobra.Command {
	var all, silent bool
	cmd := &cobra.Command{
		Use:   "retry {ID… | --all --canvas … --module … --name …}",
		Short: "Move failed events from event_log back into the queue",
		Long: "Move failed events back into the queue: under the same id, due now, with all retries before them.\n" +
			"Completed events are refused. Of several ids those that failed are moved; the exit status is 3\n" +
			"when any of them was not. --all moves those that had failed when it began.",
		Example: "  eventctl retry 17 18\n" +
			"  eventctl retry --all --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed",
		Args: cobra.ArbitraryArgs,
	}
	flags := addScopeFlags(cmd, scopeUsage{"with --all: `uuid` of the canvas", "with --all: module of the handler", "with --all: name of the handler"})
	cmd.Flags().BoolVar(&all, "all", false, "all failed events of one handler")
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, scope, err := flags.whatToRetry(all, args)
		if err != nil {
			return err
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			retrier, err := control.NewRetrier(c.store, c.queue)
			if err != nil {
				return failed(err)
			}
			if all {
				return p.retryAll(cmd.Context(), retrier, scope)
			}
			return p.retryIDs(cmd.Context(), retrier, ids)
		})
	}
	return cmd
}

// whatToRetry returns the ids on the command line, or with --all the scope of the flags.
func (f *scopeFlags) whatToRetry(all bool, args []string) (ids []eventqueue.EventID, scope eventqueue.Scope, err error) {
	if all && len(args) > 0 {
		return nil, scope, badInput(errors.New("--all and ids exclude each other: give one of them"))
	}
	for _, name := range []string{"canvas", "module", "name"} {
		switch given := f.cmd.Flags().Changed(name); {
		case all && !given:
			return nil, scope, badInput(fmt.Errorf("--all needs --%s: give --canvas, --module and --name", name))
		case !all && given:
			return nil, scope, badInput(fmt.Errorf("--%s goes with --all, not with ids", name))
		}
	}
	switch {
	case all:
		scope, err = f.scope()
		return nil, scope, err
	case len(args) == 0:
		return nil, scope, badInput(errors.New("give the ids of failed events, or --all with --canvas, --module and --name"))
	default:
		ids, err = parseIDs(args)
		return ids, scope, err
	}
}

// retriedDoc is the result of retry.
type retriedDoc struct {
	Retried int       `json:"retried"`
	Refused []refusal `json:"refused"`
}

func (p *program) writeRetried(doc retriedDoc) error {
	return p.writeLine(doc, fmt.Sprintf("moved %s back into the queue", printing.Plural(doc.Retried, "event")))
}

func (p *program) retryIDs(ctx context.Context, retrier *control.Retrier, ids []eventqueue.EventID) error {
	doc := retriedDoc{Refused: []refusal{}}
	for batch := range slices.Chunk(ids, control.MaxRetryEvents) {
		results, err := toTheEnd(ctx, func(ctx context.Context) ([]control.Retried, error) { return retrier.Retry(ctx, batch...) })
		if err != nil {
			return p.retryFailed(doc, err)
		}
		for _, r := range results {
			if r.Result == control.RetryMoved {
				doc.Retried++
				continue
			}
			doc.Refused = append(doc.Refused, refusal{r.ID, retryRefusal(r.Result)})
		}
	}
	return errors.Join(refusedError("not retried", doc.Refused), p.writeRetried(doc))
}

func (p *program) retryAll(ctx context.Context, retrier *control.Retrier, scope eventqueue.Scope) error {
	moved, err := retrier.RetryAll(ctx, scope)
	doc := retriedDoc{Retried: moved, Refused: []refusal{}}
	if err != nil {
		return p.retryFailed(doc, err)
	}
	return p.writeRetried(doc)
}

// retryFailed reports the events that were moved before a failure.
func (p *program) retryFailed(doc retriedDoc, err error) error {
	return errors.Join(failed(fmt.Errorf("%s moved, and then: %w", printing.Plural(doc.Retried, "event"), err)), p.writeRetried(doc))
}

func retryRefusal(result control.RetryResult) string {
	switch result {
	case control.RetryQueued:
		return "is not failed, or already back in the queue"
	case control.RetryCompleted:
		return "has completed: emit a new event to have it done again"
	default:
		return "is neither in event_log nor in the queue"
	}
}
