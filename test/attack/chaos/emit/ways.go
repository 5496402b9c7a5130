package emit

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
)

func emitOne(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
	_, err := e.queue.Emit(ctx, events[0])
	return err
}

func emitMany(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
	_, err := e.queue.EmitMany(ctx, events)
	return err
}

// emitInTx emits in a transaction of the queue's, which ends with an error.
func emitInTx(last error) emitFunc {
	return func(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
		return e.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			if _, err := tx.Emit(ctx, events...); err != nil {
				return err
			}
			return last
		})
	}
}

// emitTx emits in a transaction of the caller's, which ends with an error.
func emitTx(last error, notify bool) emitFunc {
	return func(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
		var pending *eventqueue.Pending
		err := pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) (err error) {
			if pending, err = e.queue.EmitTx(ctx, tx, events...); err != nil {
				return err
			}
			return last
		})
		if err == nil && notify {
			_ = pending.Notify(ctx) // its failure is a delay, and the relay's business
		}
		return err
	}
}

func emitSQL(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := e.queue.EmitSQL(ctx, tx, events...); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

const insertSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value)
VALUES ($1, $2, $3, $4, $5)`

// insert is what a program does that knows the table only.
func insert(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
	return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		for _, event := range events {
			if _, err := tx.Exec(ctx, insertSQL, [16]byte(event.Canvas), event.Module, event.Name, event.Modifier, string(event.Value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// emitUnique emits and records what was a repeat.
func emitUnique(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
	began := time.Now()
	emitted, err := e.queue.EmitUnique(ctx, events...)
	if err == nil {
		e.recordRepeats(events, emitted, began)
	}
	return err
}

func emitUniqueInTx(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
	began := time.Now()
	var emitted []eventqueue.Emitted
	err := e.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) (err error) {
		emitted, err = tx.EmitUnique(ctx, events...)
		return err
	})
	if err == nil {
		e.recordRepeats(events, emitted, began)
	}
	return err
}

// emitTyped emits typed events, on the canvas of the first one.
func emitTyped(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
	all := make([]typed.Event, len(events))
	for i := range events {
		all[i] = taskOf(events[i])
	}
	_, err := e.bus.Emit(ctx, events[0].Canvas, all...)
	return err
}

// onOwnPool emits on a pool that the queue did not make.
func onOwnPool(emit emitFunc) emitFunc {
	return func(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
		return emit(ctx, e.own, events)
	}
}
