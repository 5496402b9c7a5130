package eventqueue

import (
	"context"
	"time"
)

// Notification suggests to try an event now. Nothing is decided by it: it may be lost, doubled,
// late or forged (I2), and the worker reads the state of the event from the database.
type Notification struct {
	Event  EventID
	Canvas CanvasID

	// Traceparent is the W3C trace context of the emitter, or empty. It is carried beside the
	// documented format and is lost with the notification.
	Traceparent string
}

// Delivery is a notification that was pulled and is leased to the puller: until the lease ends, no
// one else receives it.
type Delivery struct {
	Notification

	// AckID identifies this delivery to its notifier. It is opaque to everyone else, and never
	// empty.
	AckID string
}

// MaxPublish is the largest number of notifications in one call of Publish,
// which is the limit of one Pub/Sub request.
const MaxPublish = 1000

// MaxRequeue is the longest delay of Requeue, which is Pub/Sub's longest ack deadline. For an event
// that is due later than that, the relay publishes a notification when the time comes.
const MaxRequeue = 600 * time.Second

// Publisher sends notifications.
type Publisher interface {
	// Publish sends 1 to MaxPublish notifications and returns when the notifier has accepted them
	// all. After an error, any of them may have been sent or not. It blocks at most until ctx ends
	// and is safe for concurrent use; it neither keeps nor changes the slice.
	Publish(ctx context.Context, notifications []Notification) error
}

// Receiver delivers notifications. All methods are safe for concurrent use, block at most until ctx
// ends, and neither keep nor change the slices that they are given.
type Receiver interface {
	// Pull waits for notifications and returns 1 to max of them, leased to the caller. It may also
	// return none without an error, after a wait of its own choice; the caller pulls again.
	// Messages that cannot be decoded are acknowledged, counted and logged by the receiver, and
	// never returned.
	Pull(ctx context.Context, max int) ([]Delivery, error)

	// Ack acknowledges deliveries. A delivery whose lease has ended may come again, without an
	// error. When Ack fails, each may come again.
	Ack(ctx context.Context, deliveries []Delivery) error

	// Requeue gives deliveries back, so that any worker may pull them again once the given delay
	// has passed. The delay is rounded up to the notifier's unit (never down, so that there is no
	// hot loop); 0 means at once; more than MaxRequeue is refused with an error. Requeue also
	// extends a lease: it then ends at now + after.
	Requeue(ctx context.Context, deliveries []Delivery, after time.Duration) error
}

// RemoteReceiver is a Receiver on a server of its own, which may be unavailable, or refuse, while
// the database works. A worker that has one finds due events in the database meanwhile, if its
// store supports that (see [worker.Standby]).
type RemoteReceiver interface {
	Receiver

	// Check returns nil when the notifier can deliver, as far as it can know, and otherwise why not
	// and what to do. It asks the server and blocks at most until ctx ends.
	Check(ctx context.Context) error

	// Attend does background work beside the other calls, until ctx ends or no work is left, and
	// returns nil then. An error means that the notifier must not be used as it is configured.
	Attend(ctx context.Context) error
}

// Notifier carries notifications from emitters to workers. Its implementations (pubsubnotify for
// Google Cloud Pub/Sub, pgnotify on Postgres, memnotify within one process) pass the suite of
// package notifytest.
type Notifier interface {
	Publisher
	Receiver
}
