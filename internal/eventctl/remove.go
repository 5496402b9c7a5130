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

// removal is how a command takes events out of the queue.
type removal struct {
	verb, done  string
	short, long string
	ids         func(c *operate.Changer, ctx context.Context, why operate.Cancellation, ids ...eventqueue.EventID) ([]operate.Changed, error)
	all         func(c *operate.Changer, ctx context.Context, why operate.Cancellation, filter operate.EventFilter) (operate.ChangedAll, error)
	retains     bool // with a reason
}

func cancelCommand(p *program) *cobra.Command {
	return removeCommand(p, removal{
		verb: "cancel", done: "cancelled", ids: (*operate.Changer).Cancel, all: (*operate.Changer).CancelAll, retains: true,
		short: "End waiting events without a run: they stay in event_log, from where retry moves them back",
		long: "End events that wait: they do not run, and are in event_log as CANCELLED, with their values, from\n" +
			"where eventctl retry moves them back. A running event is refused: it completes. A unique key is\n" +
			"released as if the event had completed, and the next event of its ordering group may run. Of several\n" +
			"ids, those that wait are cancelled; the exit status is 3 if any of them was refused. A filter needs\n" +
			"--yes, or --dry-run, which counts; events that run, and those that are emitted meanwhile, are left.",
	})
}

func deleteCommand(p *program) *cobra.Command {
	return removeCommand(p, removal{
		verb: "delete", done: "deleted",
		ids: func(c *operate.Changer, ctx context.Context, _ operate.Cancellation, ids ...eventqueue.EventID) ([]operate.Changed, error) {
			return c.Delete(ctx, ids...)
		},
		all: func(c *operate.Changer, ctx context.Context, _ operate.Cancellation, filter operate.EventFilter) (operate.ChangedAll, error) {
			return c.DeleteAll(ctx, filter)
		},
		short: "Delete waiting events, with their values",
		long: "Delete events that wait: they do not run, and nothing of them is left. eventctl cancel keeps them in\n" +
			"event_log. A running event is refused: it completes. A unique key is released as if the event had\n" +
			"completed, and the next event of its ordering group may run. Of several ids, those that wait are\n" +
			"deleted; the exit status is 3 if any of them was refused. A filter needs --yes, or --dry-run, which\n" +
			"counts; events that run, and those that are emitted meanwhile, are left.",
	})
}

func removeCommand(p *program, r removal) *cobra.Command {
	var silent bool
	var why operate.Cancellation
	cmd := &cobra.Command{
		Use:   r.verb + " {ID… | filter {--dry-run | --yes}}",
		Short: r.short,
		Long:  r.long,
		Example: "  eventctl " + r.verb + " 17 18\n" +
			"  eventctl " + r.verb + " --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --name order_placed --attribute source=import --dry-run",
		Args: cobra.ArbitraryArgs,
	}
	flags := addEventFilter(cmd, queuedEvents("attribute"))
	if r.retains {
		cmd.Flags().StringVar(&why.Reason, "reason", "", "why, for whoever asks why the event did not run")
		cmd.Flags().StringVar(&why.Actor, "actor", "", "who cancels (default: your user name)")
	}
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, filter, err := flags.what(args)
		if err != nil {
			return err
		}
		if err := why.Validate(); err != nil {
			return badInput(err)
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			changer, err := operate.NewChanger(c.store, c.queue)
			if err != nil {
				return failed(err)
			}
			why.Actor = actorOr(why.Actor, c.store)
			if flags.given {
				all := func(ctx context.Context, filter operate.EventFilter) (operate.ChangedAll, error) {
					return r.all(changer, ctx, why, filter)
				}
				return p.changeSelected(cmd.Context(), bulkChange{r.verb, r.done, all}, c, filter, flags.dryRun)
			}
			return p.changeIDs(cmd.Context(), r.done, ids, func(ctx context.Context, batch []eventqueue.EventID) ([]operate.Changed, error) {
				return r.ids(changer, ctx, why, batch...)
			})
		})
	}
	return cmd
}

// changedDoc is the result of a command that changes events.
type changedDoc struct {
	Done    int       `json:"changed"`
	Refused []refusal `json:"refused"`
}

// add adds the results of a batch. What was cancelled before is as it was asked for.
func (d *changedDoc) add(done string, results []operate.Changed) {
	for _, r := range results {
		switch {
		case r.Result == operate.ChangeDone:
			d.Done++
		case r.Result != operate.ChangeCancelled || done != "cancelled":
			d.Refused = append(d.Refused, refusal{r.ID, changeRefusal(r)})
		}
	}
}

func (p *program) writeChanged(done string, doc changedDoc) error {
	return p.writeLine(doc, fmt.Sprintf("%s %s", done, printing.Plural(doc.Done, "event")))
}

// changeIDs changes events in batches, each to its end. done is what has then happened to them.
func (p *program) changeIDs(ctx context.Context, done string, ids []eventqueue.EventID, change func(ctx context.Context, batch []eventqueue.EventID) ([]operate.Changed, error)) error {
	doc := changedDoc{Refused: []refusal{}}
	for batch := range slices.Chunk(ids, operate.MaxChangeEvents) {
		results, err := toTheEnd(ctx, func(ctx context.Context) ([]operate.Changed, error) { return change(ctx, batch) })
		if err != nil {
			return errors.Join(failed(fmt.Errorf("%s %s, and then: %w", printing.Plural(doc.Done, "event"), done, err)), p.writeChanged(done, doc))
		}
		doc.add(done, results)
	}
	return errors.Join(refusedError("not "+done, doc.Refused), p.writeChanged(done, doc))
}

// changeRefusal returns why an event was not changed, and what to do.
func changeRefusal(r operate.Changed) string {
	switch r.Result {
	case operate.ChangeRunning:
		return fmt.Sprintf("is running: a worker holds its lock, which is valid for %s more; wait for its end", printing.AgeAtLeast(r.LockRemaining))
	case operate.ChangeBusy:
		return "is being claimed, ended or changed at this moment: check it with eventctl show, and try again"
	case operate.ChangeCompleted:
		return "has completed"
	case operate.ChangeFailed:
		return "has failed, and does not run again unless it is retried"
	case operate.ChangeCancelled:
		return "was cancelled, and does not run again unless it is retried"
	case operate.ChangeOutdated:
		return "has been changed since it was read"
	case operate.ChangeRefused:
		return databaseRefuses(r.Err)
	default:
		return "is neither in the queue nor in event_log"
	}
}
