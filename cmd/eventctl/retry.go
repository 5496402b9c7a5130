package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
)

// retryBatch is how many events one statement moves.
const retryBatch = 1000

func (a *app) retryCommand() *cobra.Command {
	var all, silent bool
	cmd := &cobra.Command{
		Use:   "retry {ID… | --all --canvas … --module … --name …}",
		Short: "Move failed events from event_log back into the queue",
		Long: "retry moves failed events back into the queue: under the same id, due now, with all retries before\n" +
			"them. Completed events are refused. Of several ids those that failed are moved; the exit status\n" +
			"is 3 when any of them was not.",
	}
	flags := addScope(cmd, false)
	cmd.Flags().BoolVar(&all, "all", false, "all failed events of one handler")
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if !all {
			if err := onlyIDs(cmd, args); err != nil {
				return err
			}
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.withQueue(ctx, silent, func(bell *doorbell) error { return a.retryIDs(ctx, bell, ids) })
		}
		if len(args) > 0 {
			return badInput(errors.New("--all and ids exclude each other: give one of them"))
		}
		for _, name := range []string{"canvas", "module", "name"} {
			if !cmd.Flags().Changed(name) {
				return badInput(fmt.Errorf("--all needs --%s: give --canvas, --module and --name", name))
			}
		}
		scope, err := flags.scope()
		if err != nil {
			return err
		}
		return a.withQueue(ctx, silent, func(bell *doorbell) error { return a.retryAll(ctx, bell, scope) })
	}
	return cmd
}

func onlyIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return badInput(errors.New("give the ids of failed events, or --all with --canvas, --module and --name"))
	}
	for _, name := range []string{"canvas", "module", "name"} {
		if cmd.Flags().Changed(name) {
			return badInput(fmt.Errorf("--%s goes with --all, not with ids", name))
		}
	}
	return nil
}

// refusal is an event that retry or requeue has left alone.
type refusal struct {
	ID     eventqueue.EventID `json:"id"`
	Reason string             `json:"reason"`
}

// refusedError names the events that were refused; nil when there are none.
func refusedError(what string, refused []refusal) error {
	if len(refused) == 0 {
		return nil
	}
	lines := make([]string, len(refused))
	for i, r := range refused {
		lines[i] = fmt.Sprintf("event %s %s", r.ID, r.Reason)
	}
	return notFound("%s: %s", what, strings.Join(lines, "; "))
}

// retriedDoc is the result of retry.
type retriedDoc struct {
	Retried int       `json:"retried"`
	Refused []refusal `json:"refused"`
}

func (a *app) reportRetried(doc retriedDoc) error {
	return a.write(doc, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "moved %s back into the queue\n", plural(doc.Retried, "event"))
	})
}

func (a *app) retryIDs(ctx context.Context, bell *doorbell, ids []eventqueue.EventID) error {
	doc := retriedDoc{Refused: []refusal{}}
	for batch := range slices.Chunk(ids, retryBatch) {
		results, err := a.retry(ctx, bell, batch)
		if err != nil {
			return errors.Join(failed(fmt.Errorf("retry: %s moved: %w", plural(doc.Retried, "event"), err)), a.reportRetried(doc))
		}
		for _, r := range results {
			if r.Result == pgstore.RetryMoved {
				doc.Retried++
				continue
			}
			doc.Refused = append(doc.Refused, refusal{r.ID, refusalText(r.Result)})
		}
	}
	return errors.Join(refusedError("not retried", doc.Refused), a.reportRetried(doc))
}

func refusalText(result pgstore.RetryResult) string {
	switch result {
	case pgstore.RetryQueued:
		return "is not failed, or already back in the queue"
	case pgstore.RetryCompleted:
		return "has completed: emit a new event to have it done again"
	default:
		return "is neither in event_log nor in the queue"
	}
}

func (a *app) retryAll(ctx context.Context, bell *doorbell, scope eventqueue.Scope) error {
	doc := retriedDoc{Refused: []refusal{}}
	last, err := bell.store.LastLogged(ctx)
	for after := eventqueue.EventID(0); err == nil; {
		var ids []eventqueue.EventID
		ids, err = bell.store.FailedIDs(ctx, pgstore.HandlerFilterOf(scope), after, last, retryBatch)
		if err != nil || len(ids) == 0 {
			break
		}
		var results []pgstore.Retried
		results, err = a.retry(ctx, bell, ids)
		for _, r := range results {
			if r.Result == pgstore.RetryMoved {
				doc.Retried++
			}
		}
		after = ids[len(ids)-1]
	}
	if err != nil {
		return errors.Join(failed(fmt.Errorf("retry all of %s: %s moved: %w", scope, plural(doc.Retried, "event"), err)), a.reportRetried(doc))
	}
	return a.reportRetried(doc)
}

// retry moves one batch, to its end even if ctx ends meanwhile, and publishes.
func (a *app) retry(ctx context.Context, bell *doorbell, ids []eventqueue.EventID) ([]pgstore.Retried, error) {
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	results, err := bell.store.Retry(ctx, ids)
	if err != nil {
		return nil, err
	}
	var moved []eventqueue.EventID
	for _, r := range results {
		if r.Result == pgstore.RetryMoved {
			moved = append(moved, r.ID)
		}
	}
	// The events are back, come what may: this only costs time.
	if err := bell.publishOwed(ctx, moved); err != nil {
		a.complain("warning", fmt.Errorf("the relay notifies the events that were retried: %w", err))
	}
	return results, nil
}
