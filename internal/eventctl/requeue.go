package eventctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func requeueCommand(p *program) *cobra.Command {
	var silent bool
	cmd := &cobra.Command{
		Use:   "requeue {ID… | filter {--dry-run | --yes}}",
		Short: "Make queued events due now: end their delays, clear expired locks, and notify",
		Long: "Make events due now that have not ended: end their delays, clear expired locks, and publish a\n" +
			"notification for each. A running event is refused, since it would run twice. A failed event can be\n" +
			"retried (eventctl retry); a completed one never runs again. A rule still holds its events back. Of\n" +
			"several ids, those that can be requeued are; the exit status is 3 if any of them was refused. A\n" +
			"filter needs --yes, or --dry-run, which counts; events that run are left.",
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
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			requeuer, err := operate.NewRequeuer(c.store, c.queue)
			if err != nil {
				return failed(err)
			}
			if filters.given {
				return p.changeSelected(cmd.Context(), bulkChange{"requeue", "requeued", requeuer.RequeueAll}, c, filter, filters.dryRun)
			}
			return p.requeue(cmd.Context(), requeuer, ids)
		})
	}
	return cmd
}

// requeuedDoc is the result of requeue.
type requeuedDoc struct {
	Requeued int `json:"requeued"`
	// TakenOver are the requeued events whose expired locks were cleared.
	TakenOver []eventqueue.EventID `json:"taken_over"`
	// HeldBack are the requeued events that a rule keeps from running.
	HeldBack []heldBack `json:"held_back"`
	Refused  []refusal  `json:"refused"`
}

// heldBack is a requeued event that a rule keeps from running.
type heldBack struct {
	ID   eventqueue.EventID `json:"id"`
	Rule operate.RuleType   `json:"rule"`
}

func (d *requeuedDoc) add(r operate.Requeued) {
	if r.Result != operate.RequeueDone {
		d.Refused = append(d.Refused, refusal{r.ID, requeueRefusal(r)})
		return
	}
	d.Requeued++
	if r.TakenOver {
		d.TakenOver = append(d.TakenOver, r.ID)
	}
	if r.Rule != "" {
		d.HeldBack = append(d.HeldBack, heldBack{r.ID, r.Rule})
	}
}

func (p *program) requeue(ctx context.Context, requeuer *operate.Requeuer, ids []eventqueue.EventID) error {
	doc := requeuedDoc{TakenOver: []eventqueue.EventID{}, HeldBack: []heldBack{}, Refused: []refusal{}}
	for batch := range slices.Chunk(ids, operate.MaxRequeueEvents) {
		results, err := toTheEnd(ctx, func(ctx context.Context) ([]operate.Requeued, error) { return requeuer.Requeue(ctx, batch...) })
		if err != nil {
			return errors.Join(failed(fmt.Errorf("%s requeued, and then: %w", printing.Plural(doc.Requeued, "event"), err)), p.writeRequeued(doc))
		}
		for _, r := range results {
			doc.add(r)
		}
	}
	return errors.Join(refusedError("not requeued", doc.Refused), p.writeRequeued(doc))
}

func (p *program) writeRequeued(doc requeuedDoc) error {
	return p.write(doc, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "requeued %s\n", printing.Plural(doc.Requeued, "event"))
		for _, id := range doc.TakenOver {
			_, _ = fmt.Fprintf(w, "event %s: the lock that had expired is cleared, and its run counts as failed if it died alone\n", id)
		}
		for _, h := range doc.HeldBack {
			_, _ = fmt.Fprintf(w, "event %s does not run before its handler, which is %s by %s, is un%[2]s: see eventctl show %[1]s\n",
				h.ID, view.RuleState(h.Rule), view.RuleHolder(h.Rule))
		}
	})
}

// requeueRefusal returns why an event was refused, and what to do.
func requeueRefusal(r operate.Requeued) string {
	switch r.Result {
	case operate.RequeueRunning:
		return fmt.Sprintf("is running: a worker holds its lock, which is valid for %s more, and another run would be a second one; "+
			"wait for its end, or, if the worker is dead, until then", printing.AgeAtLeast(r.LockRemaining))
	case operate.RequeueBusy:
		return "is being claimed, ended or changed at this moment: look at it with eventctl show, and try again"
	case operate.RequeueCompleted:
		return "has completed: emit a new event to have it done again"
	case operate.RequeueFailed:
		return fmt.Sprintf("has failed: use eventctl retry %s", r.ID)
	case operate.RequeueCancelled:
		return fmt.Sprintf("was cancelled: use eventctl retry %s", r.ID)
	case operate.RequeueRefused:
		return databaseRefuses(r.Err)
	default:
		return "is neither in the queue nor in event_log"
	}
}
