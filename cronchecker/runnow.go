package cronchecker

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgsession"
)

// RunNow emits the event of a definition now, beside its slots, with its row in the audit log. The error is ErrNotFound if there
// is no such definition.
func RunNow(ctx context.Context, queue *eventqueue.Queue, schema pgsession.Schema, actor audit.Actor, canvas eventqueue.CanvasID, name string) (id eventqueue.EventID, err error) {
	err = queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		list, err := NewDefinitionsIn(schema, tx).List(ctx, &canvas)
		if err != nil {
			return err
		}
		for _, definition := range list {
			if definition.Name != name {
				continue
			}
			ids, err := tx.Emit(ctx, definition.Event(time.Now().Truncate(time.Second)))
			if err != nil {
				return err
			}
			id = ids[0]
			return audit.Write(ctx, schema.On(tx), actor, audit.Change{Action: "run_cron", Canvas: &canvas, Target: map[string]any{"cron": name, "events": ids}})
		}
		return ErrNotFound
	})
	return id, err
}
