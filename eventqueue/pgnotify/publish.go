package pgnotify

import (
	"context"
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/internal/trace"
)

// channel, in the schema of the queue, is the channel that a commit with new notifications notifies.
const channel = "events_v2_notifications"

// Rows are inserted in the order of their events, so that two statements with
// the same events wait for each other instead of deadlocking. The NOTIFY is sent
// even if no row was inserted: a notification that is in the table already may be
// one that every poll has passed over.
const insertSQL = `
WITH inserted AS (
    INSERT INTO events_v2_notifications (event_id, canvas_id, traceparent)
    SELECT event_id, canvas_id, traceparent
    FROM unnest($1::bigint[], $2::uuid[], $3::text[]) AS given (event_id, canvas_id, traceparent)
    ORDER BY event_id
    ON CONFLICT DO NOTHING
)
SELECT events_v2_notify($4, '')`

// Publish inserts the notifications with one statement and wakes the waiting
// pulls. If the table already has a notification of an event, that one stays. It
// blocks until the statement has committed, at most until ctx ends, or for ten
// seconds when ctx has no deadline. It does not retry. It refuses more than
// eventqueue.MaxPublish notifications, and event ids that are not positive, before
// it sends anything.
func (n *Notifier) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	if len(notifications) == 0 {
		return nil
	}
	if count := len(notifications); count > eventqueue.MaxPublish {
		return fmt.Errorf("publish %d notifications: the limit is %d in one call; split them", count, eventqueue.MaxPublish)
	}
	for i := range notifications {
		if id := notifications[i].Event; id <= 0 {
			return fmt.Errorf("publish notification %d of %d: event id %d is not positive; pass the id that the database gave",
				i, len(notifications), id)
		}
	}
	if err := n.insert(ctx, notifications); err != nil {
		return fmt.Errorf("publish %d notifications: %w", len(notifications), err)
	}
	return nil
}

// insert runs insertSQL. When its outcome is unknown it may be run again.
func (n *Notifier) insert(ctx context.Context, notifications []eventqueue.Notification) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ids, canvases := make([]int64, len(notifications)), make([][16]byte, len(notifications))
	var traceparents []*string // unnest fills up with NULL
	for i := range notifications {
		ids[i], canvases[i] = int64(notifications[i].Event), notifications[i].Canvas
		// A trace context that Postgres would refuse must not cost the notification,
		// let alone the batch.
		if text := notifications[i].Traceparent; trace.ValidParent(text) {
			if traceparents == nil {
				traceparents = make([]*string, len(notifications))
			}
			traceparents[i] = &text
		}
	}
	_, err := n.db.Exec(ctx, insertSQL, ids, canvases, traceparents, n.config.Schema.Channel(channel))
	if cause := ctx.Err(); err != nil && cause != nil {
		return cause
	}
	return err
}

// notify sends a text to all listeners. It blocks for at most ten seconds.
func (n *Notifier) notify(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := n.pool.Exec(ctx, `SELECT pg_notify($1, $2)`, n.config.Schema.Channel(channel), text)
	return err
}
