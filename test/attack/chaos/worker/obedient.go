package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
)

// errOnPurpose is the error of a run whose event asks for one.
var errOnPurpose = errors.New("failed on purpose")

// deafFor is how long a run works that ignores its context: longer than its
// timeout and the lock of the chaos run together.
const deafFor = 8 * time.Second

// snoozeFor is how long an event is put off that asks for it.
const snoozeFor = 700 * time.Millisecond

// obedient is a handler that does what the event's value asks for.
type obedient struct{ notes *journal.Writer }

// Handle runs one event.
func (o *obedient) Handle(ctx context.Context, run *eventqueue.Run) error {
	start := journal.Start{Event: run.ID, Attempt: run.Attempt, At: time.Now(), Sum: journal.Checksum(run.Value)}
	if err := o.notes.Start(start); err != nil {
		return err
	}
	t, err := parse(run)
	if err != nil {
		return eventqueue.Permanent(err)
	}
	now := t.Now(run.Retries, int(run.Attempt))
	if now == task.Panic {
		if err := o.end(run, journal.Panicked); err != nil {
			return err
		}
		panic("a panic on purpose")
	}
	err = do(ctx, run, t, now)
	return errors.Join(err, o.end(run, outcomeOf(ctx, now, err)))
}

// parse reads the value of an event; cron's are not ours and just succeed.
func parse(run *eventqueue.Run) (task.Task, error) {
	if run.Module != task.Module {
		return task.Task{Do: task.Succeed}, nil
	}
	return task.Parse(run.Value)
}

func (o *obedient) end(run *eventqueue.Run, outcome journal.Outcome) error {
	return o.notes.End(journal.End{Event: run.ID, Attempt: run.Attempt, At: time.Now(), Outcome: outcome})
}

func outcomeOf(ctx context.Context, now task.Action, err error) journal.Outcome {
	switch {
	case err == nil:
		return journal.OK
	case now == task.Permanent:
		return journal.Permanent
	case now == task.Snooze:
		return journal.Snoozed
	case ctx.Err() != nil:
		return journal.Cancelled
	default:
		return journal.Failed
	}
}

// do is the work itself.
func do(ctx context.Context, run *eventqueue.Run, t task.Task, now task.Action) error {
	switch now {
	case task.Hang:
		<-ctx.Done()
		return context.Cause(ctx)
	case task.Deaf:
		backoff.Sleep(context.WithoutCancel(ctx), deafFor)
		return nil
	default:
	}
	if !backoff.Sleep(ctx, t.Work()) {
		return context.Cause(ctx)
	}
	switch now {
	case task.Fail:
		return errOnPurpose
	case task.Permanent:
		return eventqueue.Permanent(errOnPurpose)
	case task.Snooze:
		return eventqueue.Snooze(snoozeFor)
	case task.Complete, task.Undo:
		return complete(ctx, run, t, now == task.Undo)
	default:
		return nil
	}
}

const insertEffectSQL = `
INSERT INTO chaos_effects (event_id, attempt)
VALUES ($1, $2)`

// complete ends the event in one transaction with its effect and a child event.
func complete(ctx context.Context, run *eventqueue.Run, t task.Task, undo bool) error {
	return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Exec(ctx, insertEffectSQL, run.ID, run.Attempt); err != nil {
			return fmt.Errorf("write the effect of event %s: %w", run.ID, err)
		}
		child := task.Task{Tag: t.Child(), Do: task.Succeed}
		_, err := tx.Emit(ctx, eventqueue.NewEvent{
			Canvas: run.Canvas, Module: task.Module, Name: "quick", Modifier: "_", Value: child.Value(),
		})
		if err == nil && undo {
			return errOnPurpose
		}
		return err
	})
}
