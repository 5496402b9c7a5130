package eventctl

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
)

// didYouMean asks whether a handler of a live worker was meant by one that none has; "" if none resembles it. A role
// that may not read the workers gets no question, and no error: what the command is about is done.
func didYouMean(ctx context.Context, store *pgstore.Store, canvas eventqueue.CanvasID, key eventqueue.HandlerKey) string {
	workers, err := inspect.NewIn(store.Schema(), store.Pool()).Workers(ctx)
	if err != nil {
		return ""
	}
	return inspect.DidYouMean(key, canvas, workers)
}
