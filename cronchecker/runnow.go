package cronchecker

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgsession"
)

// runHolds is how long the key of a request to run a definition stays taken after the end of its event.
const runHolds = 24 * time.Hour

// RunNow emits the event of a definition now, beside its slots, with its row in the audit log. key, if it is not empty, is the unique
// key of the event, which stays taken for a day after its end: a request that is repeated with it emits nothing, and returns the event
// that has it. The error is ErrNotFound if there is no such definition.
func RunNow(ctx context.Context, queue *eventqueue.Queue, schema pgsession.Schema, actor audit.Actor, canvas eventqueue.CanvasID, name, key string) (emitted eventqueue.Emitted, err error) {
	err = queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		list, err := NewDefinitionsIn(schema, tx).List(ctx, &canvas)
		if err != nil {
			return err
		}
		for _, definition := range list {
			if definition.Name != name {
				continue
			}
			event := definition.Event(time.Now().Truncate(time.Second))
			if key != "" {
				event.UniqueKey, event.UniqueFor = key, runHolds
			}
			all, err := tx.EmitUnique(ctx, event)
			if err != nil {
				return err
			}
			if emitted = all[0]; !emitted.New {
				return nil
			}
			return audit.Write(ctx, schema.On(tx), actor, audit.Change{Action: "run_cron", Canvas: &canvas, Target: map[string]any{"cron": name, "events": []eventqueue.EventID{emitted.ID}}})
		}
		return ErrNotFound
	})
	return emitted, err
}
