package operate

import (
	"context"
	"fmt"

	"eventsv2/eventqueue"
)

// MaxRequeueEvents is how many events one call of Requeue takes.
const MaxRequeueEvents = 1000

// Requeue has 1 to MaxRequeueEvents events tried now: their delays end, locks that
// have expired are cleared, and a notification is published for each. It answers for every
// id once, in their order.
//
// An event whose lock is valid is refused, since to try it would run it twice; so are those that
// have ended. An expired lock is taken over as by a claim: the holder's writes are refused from
// then on (I5), and a run that is known to have begun counts as a failed one; a claim that never
// led to a run uses no attempt. If it was the last run that the event was allowed, the event gets
// one more. Rules still hold their events back.
//
// Refused rows and errors are as with Cancel.
func (c *Changer) Requeue(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
	if len(ids) == 0 || len(ids) > MaxRequeueEvents {
		return nil, fmt.Errorf("requeue %d events: give 1 to %d ids in one call", len(ids), MaxRequeueEvents)
	}
	results, err := c.store.Requeue(ctx, ids)
	var free []eventqueue.EventID
	for _, result := range results {
		if result.Result == RequeueDone && result.Rule == "" {
			free = append(free, result.ID)
		}
	}
	notifyFreed(ctx, c.queue, free, "requeued")
	if err != nil {
		return results, fmt.Errorf("requeue %d events: %w", len(ids), err)
	}
	return results, nil
}
