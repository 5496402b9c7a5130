package eventctl

import (
	"context"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// removal is how a command takes events out of the queue.
type removal struct {
	verb        operate.Verb
	short, long string
	retains     bool // with a reason
}

func cancelCommand(p *program) *cobra.Command {
	return removeCommand(p, removal{
		verb: operate.VerbCancel, retains: true,
		short: "End events, and the runs of those that run: they stay in event_log, from where retry moves them back",
		long: "End events: those that wait do not run, and are in event_log as CANCELLED, with their values, from\n" +
			"where eventctl retry moves them back. The worker of a running event is asked to end the run: the\n" +
			"context of its handler ends within five seconds, and the event is CANCELLED when the handler returns\n" +
			"an error; if it returns none, the event completes. See eventctl explain. A unique key is released as\n" +
			"if the event had completed, and the next event of its ordering group may run. The exit status is 3 if\n" +
			"any of several ids was refused. A filter needs --yes, or --dry-run, which counts; events that are\n" +
			"emitted meanwhile are left. An interrupt stops it, and --resume goes on.",
	})
}

func deleteCommand(p *program) *cobra.Command {
	return removeCommand(p, removal{
		verb:  operate.VerbDelete,
		short: "Delete waiting events, with their values",
		long: "Delete events that wait: they do not run, and nothing of them is left. eventctl cancel keeps them in\n" +
			"event_log. A running event is refused: it completes. A unique key is released as if the event had\n" +
			"completed, and the next event of its ordering group may run. Of several ids, those that wait are\n" +
			"deleted; the exit status is 3 if any of them was refused. A filter needs --yes, or --dry-run, which\n" +
			"counts; events that run, and those that are emitted meanwhile, are left. An interrupt stops it, and\n" +
			"--resume goes on.",
	})
}

func removeCommand(p *program, r removal) *cobra.Command {
	var silent bool
	var why operate.Cancellation
	cmd := &cobra.Command{
		Use:   string(r.verb) + " {ID… | filter {--dry-run | --yes} | --resume OPERATION}",
		Short: r.short,
		Long:  r.long,
		Example: "  eventctl " + string(r.verb) + " 17 18\n" +
			"  eventctl " + string(r.verb) + " --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --name order_placed --attribute source=import --dry-run",
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
		if flags.many() {
			return p.changeMany(cmd.Context(), flags, operate.Change{Verb: r.verb, Filter: filter, Reason: why.Reason, Actor: why.Actor}, silent)
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			why.Actor = actorOr(why.Actor, c.store)
			return p.changeIDs(cmd.Context(), c, r.verb, ids, func(ctx context.Context, changer *operate.Changer, ids []eventqueue.EventID) ([]operate.Changed, error) {
				if r.verb == operate.VerbCancel {
					return changer.Cancel(ctx, why, ids...)
				}
				return changer.Delete(ctx, ids...)
			})
		})
	}
	return cmd
}
