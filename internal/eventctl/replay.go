package eventctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
)

func replayCommand(p *program) *cobra.Command {
	var rate, resume string
	var silent bool
	cmd := &cobra.Command{
		Use:   "replay {filter {--dry-run | --yes} [--rate …] | --resume OPERATION}",
		Short: "Emit events of the history again, as new events",
		Long: "Emit events that have ended again, which a filter selects: completed ones, which workers retain with\n" +
			"RETAIN_HISTORY=true, or failed or cancelled ones with --status. They are new events, with the values, attributes\n" +
			"and ordering keys of those that they repeat, without their unique keys, and with the id of the first one in the\n" +
			"attribute replayed_from. --rate bounds how many of them become due. An interrupt stops the replay, and --resume\n" +
			"goes on with it, as after a crash: it emits no event a second time.",
		Example: "  eventctl replay --name order_placed --newer-than 24h --dry-run\n" +
			"  eventctl replay --name order_placed --newer-than 24h --rate 20/s --yes",
		Args: cobra.NoArgs,
	}
	filters := addEventFilter(cmd, endedEvents())
	cmd.Flags().StringVar(&rate, "rate", fmt.Sprintf("%d/s", operate.DefaultReplayRate), "how many `events` become due at most, as in 20/s, 300/m or 1000/h")
	cmd.Flags().StringVar(&resume, "resume", "", "go on with the `operation` of this id, which was interrupted")
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("resume") {
			return p.resumeReplay(cmd, resume, silent)
		}
		_, filter, err := filters.what(nil)
		if err != nil {
			return err
		}
		change := operate.Change{Verb: operate.VerbReplay, Filter: filter}
		if change.Rate, err = parseReplayRate(rate); err != nil {
			return err
		}
		if filters.dryRun {
			return p.countReplay(cmd.Context(), change)
		}
		return p.withOperations(cmd.Context(), silent, func(c *connection, operations *operate.Operations) error {
			return p.replay(cmd.Context(), c, operations, change)
		})
	}
	return cmd
}

// endedEvents are selected by replay.
func endedEvents() filterOf {
	of := loggedEvents("attribute")
	of.ids = "a filter, as with --canvas and --name, or --resume"
	of.stateHelp = "only events that ended with this `status`; without it, completed ones"
	of.states, of.validate = operate.EndedStates(), operate.EventFilter.ValidateEnded
	return of
}

// parseReplayRate reads a number of events per second, minute or hour.
func parseReplayRate(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")
	seconds, known := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !known {
		return 0, badInput(fmt.Errorf("--rate %q is no rate: write it like 20/s, 300/m or 1000/h", text))
	}
	if rate := n / seconds; rate >= operate.MinReplayRate && rate <= operate.MaxReplayRate {
		return rate, nil
	}
	return 0, badInput(fmt.Errorf("--rate %s is out of range: it must be from %v to %d events per second", text, operate.MinReplayRate, operate.MaxReplayRate))
}

// replayedDoc is the result of replay.
type replayedDoc struct {
	// Operation is what --resume takes; nil for a dry run.
	Operation *uuid.UUID `json:"operation,omitempty"`
	DryRun    bool       `json:"dry_run"`
	// Replayed is how many events were emitted, or for a dry run would be.
	Replayed int `json:"replayed"`
	// Refused were refused by the database.
	Refused int `json:"refused"`
	// Seconds is how long it takes, at least, until the last of them is due.
	Seconds float64 `json:"seconds"`
}

// countReplay is the dry run. It writes nothing.
func (p *program) countReplay(ctx context.Context, change operate.Change) error {
	return p.withStore(ctx, func(store *pgstore.Store, config setup.Config) error {
		queue, err := silentQueue(store, config.Limits())
		if err != nil {
			return failed(err)
		}
		operations, err := operate.NewOperations(store, queue, p.Logger())
		if err != nil {
			return failed(err)
		}
		n, err := operations.Size(ctx, change)
		if err != nil {
			return replayError(err)
		}
		takes := change.Takes(n)
		return p.writeLine(replayedDoc{DryRun: true, Replayed: n, Seconds: takes.Seconds()},
			fmt.Sprintf("would replay %s, within %s", printing.Plural(n, "event"), printing.AgeAtLeast(takes)))
	})
}

// replayError is bad input where the filter, or what is retained, makes no sense.
func replayError(err error) error {
	var invalid *operate.InvalidError
	if errors.As(err, &invalid) {
		return badInput(invalid)
	}
	return failed(err)
}

func (p *program) withOperations(ctx context.Context, silent bool, f func(c *connection, operations *operate.Operations) error) error {
	return p.withQueue(ctx, silent, func(c *connection) error {
		operations, err := operate.NewOperations(c.store, c.queue, p.Logger())
		if err != nil {
			return failed(err)
		}
		return f(c, operations)
	})
}

func (p *program) replay(ctx context.Context, c *connection, operations *operate.Operations, change operate.Change) error {
	by := actor(c.store)
	op, err := operations.Count(ctx, by, by.Name, change)
	if err != nil {
		return replayError(err)
	}
	if op, err = operations.Confirm(ctx, by, by.Name, op.ID); err != nil {
		return failed(err)
	}
	return p.awaitReplay(ctx, c, operations, op)
}

func (p *program) resumeReplay(cmd *cobra.Command, text string, silent bool) error {
	id, err := uuid.Parse(text)
	if err != nil {
		return badInput(fmt.Errorf("--resume %q is no uuid: give the operation that the interrupted command has named", text))
	}
	for _, name := range []string{"canvas", "module", "name", "modifier", "error", "older-than", "newer-than", "status", "attribute", "rate", "dry-run", "yes"} {
		if cmd.Flags().Changed(name) {
			return badInput(fmt.Errorf("--resume and --%s exclude each other: the operation has its filter and its rate", name))
		}
	}
	ctx := cmd.Context()
	return p.withOperations(ctx, silent, func(c *connection, operations *operate.Operations) error {
		op, err := operations.Get(ctx, id)
		if err == nil && op.Change.Verb != operate.VerbReplay {
			return badInput(fmt.Errorf("operation %s is no replay but a %s", id, op.Change.Verb))
		}
		if err == nil {
			op, err = operations.Resume(ctx, actor(c.store), id)
		}
		switch {
		case errors.Is(err, operate.ErrUnknownOperation):
			return notFound("there is no operation %s: it ended more than a week ago, or the id is mistyped", id)
		case err != nil:
			return failed(err)
		case op.State == operate.OperationCounted:
			return badInput(fmt.Errorf("operation %s was counted, and nobody has confirmed it", id))
		}
		return p.awaitReplay(ctx, c, operations, op)
	})
}

// awaitReplay works on a replay to its end. An interrupt stops it.
func (p *program) awaitReplay(ctx context.Context, c *connection, operations *operate.Operations, op operate.Operation) error {
	if op.State != operate.OperationRunning {
		return p.writeReplayed(op)
	}
	if p.JSON {
		_, _ = fmt.Fprintf(p.Stderr(), "{\"operation\":%q}\n", op.ID)
	} else {
		_, _ = fmt.Fprintf(p.Stderr(), "operation %s: %s to replay\n", op.ID, printing.Plural(op.Counted-op.Changed, "event"))
	}
	bar := p.Progress("replaying", op.Counted, "events")
	shown := 0
	ended, err := operations.Await(ctx, op.ID, func(op operate.Operation) {
		bar.Add(op.Changed - shown)
		shown = op.Changed
	})
	bar.End()
	if ctx.Err() == nil {
		if err != nil {
			return failed(fmt.Errorf("%w; to go on: eventctl replay --resume %s", err, op.ID))
		}
		return p.writeReplayed(ended)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	if ended, err = operations.Stop(last, actor(c.store), op.ID); err != nil {
		return failed(fmt.Errorf("interrupted, and the operation could not be stopped, so that another program may go on with it: %w", err))
	}
	return p.writeReplayed(ended)
}

// writeReplayed reports a replay that has ended. It is an error unless it is done.
func (p *program) writeReplayed(op operate.Operation) (err error) {
	switch {
	case op.State == operate.OperationFailed:
		err = failed(fmt.Errorf("the replay has failed too often; when the cause is gone: eventctl replay --resume %s", op.ID))
	case op.State == operate.OperationStopped:
		err = failed(fmt.Errorf("the replay was stopped; to go on: eventctl replay --resume %s", op.ID))
	case op.Refused > 0:
		err = &failure{exitNotFound, fmt.Errorf("the database refuses to write %s: see what is on the table events_v2", printing.Plural(op.Refused, "event"))}
	}
	id := op.ID
	doc := replayedDoc{Operation: &id, Replayed: op.Changed, Refused: op.Refused, Seconds: op.Change.Takes(op.Changed).Seconds()}
	return errors.Join(err, p.writeLine(doc, fmt.Sprintf("replayed %s", printing.Plural(op.Changed, "event"))))
}
