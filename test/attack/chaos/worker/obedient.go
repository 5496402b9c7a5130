package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/service"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/programs"
)

// errOnPurpose is the error of a run whose event asks for one.
var errOnPurpose = errors.New("failed on purpose")

// deafFor is how long a run works that ignores its context: longer than its
// timeout and the lock of the chaos run together.
const deafFor = 8 * time.Second

// snoozeFor is how long an event is put off that asks for it.
const snoozeFor = 700 * time.Millisecond

// obedient has handlers that do what the events' values ask for.
type obedient struct{ lines *journal.Writer }

// register adds the handlers of all events, typed ones included.
func (o obedient) register(s *service.Service) error {
	bus, err := task.Chain(s.Queue, obey)
	if err != nil {
		return err
	}
	typed := eventqueue.NewHandlers()
	if err := bus.Register(typed); err != nil {
		return err
	}
	err = programs.Register(s, task.Handlers(), o.recorded(eventqueue.HandlerFunc(obey)))
	for _, key := range typed.Set().Everywhere {
		h, _ := typed.Lookup(&eventqueue.Event{Module: key.Module, Name: key.Name, Modifier: key.Modifier}) // it is in the set
		err = errors.Join(err, s.Register(key, o.recorded(h.Handler), h.Policy))
	}
	return err
}

// recorded runs a handler, and records the start and the end of each run.
func (o obedient) recorded(h eventqueue.Handler) eventqueue.HandlerFunc {
	return func(ctx context.Context, run *eventqueue.Run) error {
		start := journal.Line{Kind: journal.Start, Event: run.ID, Attempt: run.Attempt, At: time.Now(), Sum: record.Checksum(run.Value)}
		if err := o.lines.Write(start); err != nil {
			return err
		}
		end := func(outcome journal.Outcome) error {
			return o.lines.Write(journal.Line{Kind: journal.End, Event: run.ID, Attempt: run.Attempt, At: time.Now(), Outcome: outcome})
		}
		defer func() {
			if p := recover(); p != nil {
				_ = end(journal.Panicked) // a run without an end is one that failed, too
				panic(p)
			}
		}()
		err := h.Handle(ctx, run)
		return errors.Join(err, end(outcomeOf(ctx, err)))
	}
}

func outcomeOf(ctx context.Context, err error) journal.Outcome {
	_, snoozed := eventqueue.SnoozeOf(err)
	switch {
	case err == nil:
		return journal.OK
	case eventqueue.IsPermanent(err):
		return journal.Permanent
	case snoozed:
		return journal.Snoozed
	case ctx.Err() != nil:
		return journal.Cancelled
	default:
		return journal.Failed
	}
}

// obey is the handler of all events.
func obey(ctx context.Context, run *eventqueue.Run) error {
	t, err := parse(run)
	if err != nil {
		return eventqueue.Permanent(err)
	}
	now := t.Now(run.Retries, int(run.Attempt))
	if now == task.Panic {
		panic("a panic on purpose")
	}
	return do(ctx, run, t, now)
}

// parse reads the value of an event; cron's are not ours and just succeed.
func parse(run *eventqueue.Run) (task.Task, error) {
	if run.Module == cronchecker.Module {
		return task.Task{Do: task.Succeed}, nil
	}
	return task.Parse(run.Value)
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
