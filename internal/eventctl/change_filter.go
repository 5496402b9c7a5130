package eventctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/internal/humantime"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// manyWords are the texts of a command about a change of many events.
type manyWords struct{ command, would, done, rest, but string }

const (
	butRunning = ", but for those that run then"
	endRunning = ", and ask the workers of those that run then to end the runs"
)

var wordsOfMany = map[operate.Verb]manyWords{
	operate.VerbCancel:      {"cancel", "cancel", "cancelled", "", endRunning},
	operate.VerbDelete:      {"delete", "delete", "deleted", "", butRunning},
	operate.VerbEdit:        {"edit", "edit", "edited", "", butRunning},
	operate.VerbRun:         {"requeue", "requeue", "requeued", "", butRunning},
	operate.VerbRetry:       {"retry", "move", "moved", " back into the queue", ""},
	operate.VerbDeleteEnded: {"log delete", "delete", "deleted", " from event_log", ""},
	operate.VerbReplay:      {"replay", "replay", "replayed", "", ""},
}

// countedDoc is the result of a dry run.
type countedDoc struct {
	DryRun  bool             `json:"dry_run"`
	Verb    operate.Verb     `json:"verb"`
	Filter  view.EventFilter `json:"filter"`
	Counted int              `json:"counted"`
	// Takes is how long it takes, at least, until the last event of a replay is due.
	Takes view.Seconds `json:"takes_seconds,omitempty"`
}

// manyDoc is the result of a change of many events, with the first of those that the database refused.
type manyDoc struct {
	view.Operation
	FirstRefused []view.Refusal `json:"first_refused,omitempty"`
	Takes        view.Seconds   `json:"takes_seconds,omitempty"`
}

func (d manyDoc) text(words manyWords) string {
	text := fmt.Sprintf("%s %s%s", words.done, printing.Plural(d.Changed, "event"), words.rest)
	for _, left := range []struct {
		n         int
		kind, why string
	}{{d.Running, "running event", ""}, {d.Busy, "event", " that others were writing"}, {d.Refused, "event", " that the database refuses to write"}} {
		switch {
		case left.n == 0:
		case left.kind == "running event" && d.Verb == operate.VerbCancel:
			text += fmt.Sprintf("; asked for the end of %s", printing.Plural(left.n, "run"))
		default:
			text += fmt.Sprintf("; left %s%s", printing.Plural(left.n, left.kind), left.why)
		}
	}
	return text
}

// changeMany changes what a filter selects, or goes on with that.
func (p *program) changeMany(ctx context.Context, filters *eventFilterFlags, change operate.Change, silent bool) error {
	if filters.dryRun {
		return p.countMany(ctx, change)
	}
	return p.withQueue(ctx, silent, func(c *connection) error {
		operations, err := operate.NewOperations(c.store, c.queue, p.Logger())
		if err != nil {
			return failed(err)
		}
		var op operate.Operation
		if filters.resuming() {
			op, err = resumed(ctx, c, operations, change.Verb, filters.resume)
		} else {
			op, err = begun(ctx, c, operations, change)
		}
		if err != nil {
			return err
		}
		return p.awaitMany(ctx, c, operations, op)
	})
}

// countMany is the dry run. It writes nothing.
func (p *program) countMany(ctx context.Context, change operate.Change) error {
	return p.withOperations(ctx, func(operations *operate.Operations) error {
		n, err := operations.Size(ctx, change)
		if err != nil {
			return countError(ctx, err)
		}
		words, takes := wordsOfMany[change.Verb], change.Takes(n)
		text := fmt.Sprintf("would %s %s%s%s", words.would, printing.Plural(n, "event"), words.rest, words.but)
		if change.Verb == operate.VerbReplay {
			text += ", within " + humantime.AgeAtLeast(takes)
		}
		return p.writeLine(countedDoc{true, change.Verb, view.EventFilterOf(change.Filter), n, view.Seconds(takes.Seconds())}, text)
	})
}

// countError is the error of a count.
func countError(ctx context.Context, err error) error {
	var invalid *operate.InvalidError
	switch {
	case errors.As(err, &invalid):
		return badInput(invalid)
	case ctx.Err() != nil:
		return failed(errors.New("interrupted, and nothing was changed"))
	default:
		return failed(err)
	}
}

// begun starts a change. --yes has confirmed it.
func begun(ctx context.Context, c *connection, operations *operate.Operations, change operate.Change) (op operate.Operation, err error) {
	by := actor(c.store)
	if change.Verb == operate.VerbCancel {
		change.Actor = actorOr(change.Actor, c.store)
	}
	if op, err = operations.Count(ctx, by, by.Name, change); err != nil {
		return op, countError(ctx, err)
	}
	if op, err = operations.Confirm(ctx, by, by.Name, op.ID); err != nil {
		return op, failed(err)
	}
	return op, nil
}

// resumed has a change go on that was interrupted.
func resumed(ctx context.Context, c *connection, operations *operate.Operations, verb operate.Verb, text string) (op operate.Operation, err error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return op, badInput(fmt.Errorf("--resume %q is no uuid: give the operation that the interrupted command has named", text))
	}
	op, err = operations.Get(ctx, id)
	if words, known := wordsOfMany[op.Change.Verb]; err == nil && op.Change.Verb != verb {
		if !known {
			return op, badInput(fmt.Errorf("operation %s is no %s, and unknown to this version of eventctl", id, wordsOfMany[verb].command))
		}
		return op, badInput(fmt.Errorf("operation %s is no %s: use eventctl %s --resume %s", id, wordsOfMany[verb].command, words.command, id))
	}
	if err == nil {
		op, err = operations.Resume(ctx, actor(c.store), id)
	}
	switch {
	case errors.Is(err, operate.ErrUnknownOperation):
		return op, unknownOperation(id)
	case err != nil:
		return op, failed(err)
	case op.State == operate.OperationCounted:
		return op, badInput(fmt.Errorf("operation %s was counted, and nobody has confirmed it", id))
	}
	return op, nil
}

// stopTakes bounds the statements after an interrupt.
const stopTakes = time.Minute

// awaitMany works on a change to its end, whether there are other programs that do or not. An interrupt stops it.
func (p *program) awaitMany(ctx context.Context, c *connection, operations *operate.Operations, op operate.Operation) error {
	words := wordsOfMany[op.Change.Verb]
	var first []view.Refusal
	if op.State == operate.OperationRunning {
		if p.JSON {
			_, _ = fmt.Fprintf(p.Stderr(), "{\"operation\":%q}\n", op.ID)
		} else {
			_, _ = fmt.Fprintf(p.Stderr(), "operation %s: %s to %s\n", op.ID, printing.Plural(op.Counted-op.Changed, "event"), words.would)
		}
		bar, shown, id := p.Progress(words.would, op.Counted, "events"), 0, op.ID
		ended, err := operations.Await(ctx, id, func(op operate.Operation) {
			bar.Add(op.Changed - shown)
			shown = op.Changed
		}, func(r operate.Changed) {
			if len(first) < namedRefusals {
				first = append(first, refusalOf(r))
			}
		})
		bar.End()
		if ctx.Err() != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTakes)
			defer cancel()
			if ended, err = operations.Stop(last, actor(c.store), id); err != nil {
				return failed(fmt.Errorf("interrupted, and the operation could not be stopped, so that another program may go on with it: %w", err))
			}
		}
		if err != nil {
			return failed(fmt.Errorf("%w; to go on: eventctl %s --resume %s", err, words.command, id))
		}
		op = ended
	}
	return p.writeMany(op, words, first)
}

// namedRefusals is how many events a command names that the database refuses to write.
const namedRefusals = 20

// writeMany reports a change that has ended. It is an error unless all of it is done.
func (p *program) writeMany(op operate.Operation, words manyWords, first []view.Refusal) (err error) {
	switch {
	case op.State == operate.OperationFailed:
		err = failed(fmt.Errorf("it has failed too often; when the cause is gone: eventctl %s --resume %s", words.command, op.ID))
	case op.State == operate.OperationStopped:
		err = failed(fmt.Errorf("it was stopped; to go on: eventctl %s --resume %s", words.command, op.ID))
	case len(first) > 0:
		err = refusedError("not "+words.done, first)
	case op.Refused > 0:
		err = notFound("the database refuses to write %s: see which triggers and constraints the tables have", printing.Plural(op.Refused, "event"))
	}
	doc := manyDoc{view.OperationOf(op), first, view.Seconds(op.Change.Takes(op.Changed).Seconds())}
	return errors.Join(err, p.writeLine(doc, doc.text(words)))
}

// checkResume refuses a flag beside --resume.
func checkResume(cmd *cobra.Command, ids []string) error {
	if len(ids) > 0 {
		return badInput(errors.New("--resume and ids exclude each other: give one of them"))
	}
	for _, name := range []string{"canvas", "module", "name", "modifier", "error", "older-than", "newer-than", "state", "status", "attribute", "where-attribute", "all",
		"dry-run", "yes", "reason", "actor", "value", "delay", "delay-until", "no-attributes", "rate"} {
		if cmd.Flags().Changed(name) {
			return badInput(fmt.Errorf("--resume and --%s exclude each other: the operation has its filter and what it does", name))
		}
	}
	return nil
}
