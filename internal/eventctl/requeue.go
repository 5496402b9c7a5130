package eventctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/internal/printing"
)

func requeueCommand(p *program) *cobra.Command {
	var silent bool
	cmd := &cobra.Command{
		Use:   "requeue ID…",
		Short: "Have events of the queue tried now: end their delays, clear locks that have expired, and notify",
		Long: "Have events tried now that have not ended: end their delays, clear locks that have expired, and\n" +
			"publish a notification for each. An event that runs is refused, since it would run twice; one that\n" +
			"has failed is a matter for retry, one that has completed is never run again. A rule goes on holding\n" +
			"its events back. Of several ids those that can be are requeued; the exit status is 3 when any of\n" +
			"them was refused.",
		Example: "  eventctl requeue 17 18",
		Args:    cobra.ArbitraryArgs,
	}
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return badInput(errors.New("give the ids of events that have not ended; eventctl stuck and eventctl list list them"))
		}
		ids, err := parseIDs(args)
		if err != nil {
			return err
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			requeuer, err := control.NewRequeuer(c.store, c.queue, 0)
			if err != nil {
				return failed(err)
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
	Rule control.RuleType   `json:"rule"`
}

func (d *requeuedDoc) add(r control.Requeued) {
	if r.Result != control.RequeueDone {
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

func (p *program) requeue(ctx context.Context, requeuer *control.Requeuer, ids []eventqueue.EventID) error {
	doc := requeuedDoc{TakenOver: []eventqueue.EventID{}, HeldBack: []heldBack{}, Refused: []refusal{}}
	for batch := range slices.Chunk(ids, control.MaxRequeueEvents) {
		results, err := toTheEnd(ctx, func(ctx context.Context) ([]control.Requeued, error) { return requeuer.Requeue(ctx, batch...) })
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
			_, _ = fmt.Fprintf(w, "event %s: the lock that had expired is cleared, and its run counts as failed if it is known to have begun\n", id)
		}
		for _, h := range doc.HeldBack {
			words := wordsOf(h.Rule)
			_, _ = fmt.Fprintf(w, "event %s does not run before its handler, which is %s by %s, is %s: see eventctl show %s\n",
				h.ID, words.added, words.who, words.lifted, h.ID)
		}
	})
}

// requeueRefusal returns why an event was refused, and what to do.
func requeueRefusal(r control.Requeued) string {
	switch r.Result {
	case control.RequeueRunning:
		return fmt.Sprintf("is running: a worker holds its lock, which is valid for %s more, and another run would be a second one; "+
			"wait for its end, or, if the worker is dead, until then", printing.AgeAtLeast(r.LockRemaining))
	case control.RequeueBusy:
		return "is being claimed, ended or changed at this moment: look at it with eventctl show, and try again"
	case control.RequeueCompleted:
		return "has completed: emit a new event to have it done again"
	case control.RequeueFailed:
		return fmt.Sprintf("has failed: use eventctl retry %s", r.ID)
	default:
		return "is neither in the queue nor in event_log"
	}
}
