package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
)

func (a *app) requeueCommand() *cobra.Command {
	var silent bool
	cmd := &cobra.Command{
		Use:   "requeue ID…",
		Short: "Have events of the queue tried now: end their delays, clear locks that have expired, and notify",
		Long: "requeue has events tried now that have not ended: it ends their delays, clears locks that have\n" +
			"expired, and publishes a notification for each. An event that runs is refused, since it would run\n" +
			"twice; one that has failed is a matter for retry, one that has completed is never run again. A rule\n" +
			"goes on holding its events back. Of several ids those that can be are requeued; the exit status is\n" +
			"3 when any of them was refused. LOCK_TIMEOUT must be that of the workers.",
		Args: cobra.ArbitraryArgs,
	}
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return badInput(errors.New("give the ids of events that have not ended; eventctl stuck and eventctl ls list them"))
		}
		ids, err := parseIDs(args)
		if err != nil {
			return err
		}
		config, err := a.config()
		if err != nil {
			return err
		}
		return a.withQueue(cmd.Context(), silent, func(bell *doorbell) error {
			requeuer, err := eventqueue.NewRequeuer(bell.store, bell.queue, config.LockTimeout)
			if err != nil {
				return failed(err)
			}
			return a.requeue(cmd.Context(), requeuer, ids)
		})
	}
	return cmd
}

// requeuedDoc is the result of requeue.
type requeuedDoc struct {
	Requeued int `json:"requeued"`
	// TakenOver are those of them whose expired locks were cleared.
	TakenOver []eventqueue.EventID `json:"taken_over"`
	// HeldBack are those of them that a rule keeps from running.
	HeldBack []heldBack `json:"held_back"`
	Refused  []refusal  `json:"refused"`
}

// heldBack is an event that was requeued and does not run.
type heldBack struct {
	ID   eventqueue.EventID  `json:"id"`
	Rule eventqueue.RuleType `json:"rule"`
}

func (d *requeuedDoc) add(r eventqueue.Requeued) {
	if r.Result != eventqueue.RequeueDone {
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

func (a *app) requeue(ctx context.Context, requeuer *eventqueue.Requeuer, ids []eventqueue.EventID) error {
	doc := requeuedDoc{TakenOver: []eventqueue.EventID{}, HeldBack: []heldBack{}, Refused: []refusal{}}
	for batch := range slices.Chunk(ids, eventqueue.MaxRequeueEvents) {
		results, err := requeueBatch(ctx, requeuer, batch)
		if err != nil {
			return errors.Join(failed(fmt.Errorf("%s requeued, and then: %w", plural(doc.Requeued, "event"), err)), a.reportRequeued(doc))
		}
		for _, r := range results {
			doc.add(r)
		}
	}
	return errors.Join(refusedError("not requeued", doc.Refused), a.reportRequeued(doc))
}

// requeueBatch goes on to its end even if ctx ends meanwhile, so that what it did
// is known.
func requeueBatch(ctx context.Context, requeuer *eventqueue.Requeuer, ids []eventqueue.EventID) ([]eventqueue.Requeued, error) {
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	return requeuer.Requeue(ctx, ids...)
}

func (a *app) reportRequeued(doc requeuedDoc) error {
	return a.write(doc, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "requeued %s\n", plural(doc.Requeued, "event"))
		for _, id := range doc.TakenOver {
			_, _ = fmt.Fprintf(w, "event %s: the lock that had expired is cleared, and its run counts as failed\n", id)
		}
		for _, h := range doc.HeldBack {
			words := wordsOf(h.Rule)
			_, _ = fmt.Fprintf(w, "event %s does not run before its handler, which is %s by %s, is %s: see eventctl show %s\n",
				h.ID, words.done, words.who, words.over, h.ID)
		}
	})
}

// requeueRefusal says why an event was refused, and what to do.
func requeueRefusal(r eventqueue.Requeued) string {
	switch r.Result {
	case eventqueue.RequeueRunning:
		return fmt.Sprintf("is running: a worker holds its lock, which is valid for %s more, and another run would be a second one; "+
			"wait for its end, or, if the worker is dead, until then", age(r.LockRemaining+time.Second-1))
	case eventqueue.RequeueBusy:
		return "is being claimed, ended or changed at this moment: look at it with eventctl show, and try again"
	case eventqueue.RequeueCompleted:
		return "has completed: emit a new event to have it done again"
	case eventqueue.RequeueFailed:
		return fmt.Sprintf("has failed: use eventctl retry %s", r.ID)
	default:
		return "is neither in the queue nor in event_log"
	}
}
