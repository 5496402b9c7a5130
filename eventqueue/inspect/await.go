package inspect

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// Await waits until an event that was committed has ended, and returns its entry of event_log, with its value and its result; nil if it is not
// there: the event has completed, and its history is not kept, or it was deleted. When ctx ends first, the error is its.
//
// It asks at intervals that grow from 20 ms to a second, in a short transaction each, and needs the right to read events.
func (r *Reader) Await(ctx context.Context, id eventqueue.EventID) (ended *LogEntry, err error) {
	const first, most = 20 * time.Millisecond, time.Second
	for wait := first; ; wait = min(wait*3/2, most) {
		var queued bool
		err := r.pool.Snapshot(ctx, func(tx pgsession.DB) (err error) {
			if err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM events_v2 WHERE id = $1)`, id).Scan(&queued); err == nil && !queued {
				ended, err = optional(ctx, tx, scanLogged, showLogSQL, true, []eventqueue.EventID{id})
			}
			return err
		})
		if err != nil || !queued {
			return ended, awaiting(id, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, awaiting(id, context.Cause(ctx))
		}
	}
}

func awaiting(id eventqueue.EventID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("await the end of event %s: %w", id, err)
}
