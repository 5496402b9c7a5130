package eventqueue

import (
	"context"
	"time"
)

// Notification says that now would be a good time to try an event. It decides
// nothing: it may be lost, doubled, late or forged (I2), and the worker asks
// the database what is true of the event that it names.
type Notification struct {
	Event  EventID
	Canvas CanvasID

	// Traceparent is the W3C trace context of the emitter, or empty. It rides
	// along outside the documented format and is lost with the notification.
	Traceparent string
}

// Delivery is a notification that was pulled and is leased to the puller: until
// the lease ends nobody else is shown it.
type Delivery struct {
	Notification

	// AckID names this delivery to the notifier that made it; opaque to all
	// others, and never empty.
	AckID string

	// unheard: the worker has found the event without a notification, and none
	// has been published for it.
	unheard bool
}

// MaxPublish is the largest number of notifications in one call of Publish,
// which is the limit of one Pub/Sub request.
const MaxPublish = 1000

// MaxRequeue is the longest delay of Requeue, which is Pub/Sub's longest ack
// deadline. An event that is not due for longer is owed a notification by the
// relay instead.
const MaxRequeue = 600 * time.Second

// Publisher sends notifications.
type Publisher interface {
	// Publish sends 1 to MaxPublish notifications and returns when the broker
	// has accepted them all. An error means that any of them may be out or not.
	// It blocks at most until ctx ends and is safe for concurrent use; it
	// neither keeps nor changes the slice.
	Publish(ctx context.Context, notifications []Notification) error
}

// Receiver hands out notifications. All methods are safe for concurrent use,
// block at most until ctx ends, and neither keep nor change the slices that
// they are given.
type Receiver interface {
	// Pull waits for notifications and returns 1 to max of them, leased to the
	// caller. It may also return none without an error, when it has waited long
	// enough for its own reasons; the caller pulls again. What cannot be decoded
	// is acknowledged, counted and logged by the receiver and is never returned.
	Pull(ctx context.Context, max int) ([]Delivery, error)

	// Ack drops deliveries for good. One whose lease has ended may come again,
	// without an error. When it fails, each may come again.
	Ack(ctx context.Context, deliveries []Delivery) error

	// Requeue gives deliveries back, to be pulled again by anybody not before
	// the given delay has passed. The delay is rounded up to the notifier's unit
	// (never down, so that nothing loops hot); 0 means at once; more than
	// MaxRequeue is refused with an error. Requeue is also how a lease is
	// extended: its end is moved to now + after.
	Requeue(ctx context.Context, deliveries []Delivery, after time.Duration) error
}

// Notifier is the doorbell between emitters and workers. Its implementations
// (pubsubnotify for Google Cloud Pub/Sub, pgnotify on Postgres, memnotify within
// one process) pass the suite of package notifytest.
type Notifier interface {
	Publisher
	Receiver
}
