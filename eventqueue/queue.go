package eventqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/lostanswer"
	"eventsv2/internal/refusal"
	"eventsv2/internal/trace"
)

// QueueConfig configures a Queue. The zero value is ready to use.
type QueueConfig struct {
	Limits Limits

	// Canvas, Module and Modifier are for events that name none, in every form of
	// emit. Default (zero): an event that lacks one is refused.
	Canvas   CanvasID
	Module   string
	Modifier string

	// EmitMiddleware is called around each emit, whatever its form, the first one outermost. Default
	// (nil): none.
	EmitMiddleware []EmitMiddleware

	// PublishTimeout bounds one request to the notifier. Default (0): 2 s.
	PublishTimeout time.Duration

	// PublishRest is the time between two probes of a notifier that failed; until one succeeds, no
	// emit waits for the notifier, and its notifications are pending from the start. Default (0): 1
	// s.
	PublishRest time.Duration

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// NoMinutes has nothing counted for event_minutes. Default (false): emits and runs are counted,
	// and the counts are handed in once a minute while there are any.
	NoMinutes bool

	// Logger gets an entry when publishing begins to fail and when it succeeds again. Default
	// (nil): none.
	Logger *zap.Logger
}

func (c QueueConfig) withDefaults() QueueConfig {
	c.Limits = c.Limits.withDefaults()
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 2*time.Second)
	c.PublishRest = cmp.Or(c.PublishRest, defaultRest)
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the first invalid field.
func (c QueueConfig) Validate() error {
	if c.PublishTimeout < 0 {
		return fmt.Errorf("PublishTimeout is %s: it must not be negative", c.PublishTimeout)
	}
	if c.PublishRest < 0 {
		return fmt.Errorf("PublishRest is %s: it must not be negative", c.PublishRest)
	}
	for _, f := range []struct{ name, value string }{{"Module", c.Module}, {"Modifier", c.Modifier}} {
		if err := CheckName(f.value); f.value != "" && err != nil {
			return fmt.Errorf("%s %w", f.name, err)
		}
	}
	if i := slices.IndexFunc(c.EmitMiddleware, func(m EmitMiddleware) bool { return m == nil }); i >= 0 {
		return fmt.Errorf("EmitMiddleware[%d] is nil: leave it out", i)
	}
	return c.Limits.Validate()
}

// Queue accepts events. It is safe for concurrent use, and has no connection and no goroutine while
// nothing is emitted and no emit has lost its answer.
type Queue struct {
	store      EmitStore
	limits     Limits
	missing    NewEvent // Canvas, Module and Modifier of events without
	middleware []EmitMiddleware
	inserts    *groupCommit
	publisher  *Sender

	unanswered *unansweredEmits
	takes      *lostanswer.Takes[EventID]
	counter    Counter // nil: nothing is counted
}

// New makes a Queue on a database and a notifier.
func New(store EmitStore, notifier Publisher, config QueueConfig) (*Queue, error) {
	if store == nil || notifier == nil {
		return nil, errors.New("eventqueue.New: store and notifier must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("eventqueue.New: %w", err)
	}
	config = config.withDefaults()
	q := &Queue{
		store:      store,
		limits:     config.Limits,
		missing:    NewEvent{Canvas: config.Canvas, Module: config.Module, Modifier: config.Modifier},
		middleware: slices.Clone(config.EmitMiddleware),
		publisher:  NewSender(notifier, store, config.PublishTimeout, config.PublishRest, config.Logger),
	}
	q.unanswered = &unansweredEmits{search: store.Unclaimed, publish: q.notifySoon, log: config.Logger, sought: map[Scope]*soughtEvents{}}
	q.takes = lostanswer.New(store, config.Logger)
	q.inserts = &groupCommit{insert: q.insert, notify: q.notifyLater, came: make(chan struct{}, 1)}
	if counting, ok := store.(CountingStore); ok && !config.NoMinutes {
		q.counter = counting.NewCounter(config.Jitter, config.Logger)
	}
	return q, nil
}

// countEmits counts the events of an insert; a Repeat is none.
func (q *Queue) countEmits(events []NewEvent, inserted []Inserted) {
	if q.counter == nil {
		return
	}
	q.counter.CountEmits(func(yield func(Scope) bool) {
		for i, row := range inserted {
			if e := &events[i]; !row.Repeat && !yield(Scope{e.Canvas, e.Module, e.Name}) {
				return
			}
		}
	})
}

// notifyLater publishes for an emitter that no longer waits.
func (q *Queue) notifyLater(parent string, events []NewEvent, inserted []Inserted) {
	q.notifySoon(toNotify(parent, events, inserted))
	q.publisher.probe(context.Background(), Notification{Event: inserted[0].ID, Canvas: events[0].Canvas})
}

// notifySoon publishes notifications, and does not wait until they are published.
func (q *Queue) notifySoon(notifications []Notification) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel() // publish returns at once but still publishes
	q.publisher.publish(canceled, notifications)
}

// PublishError returns why the last notifications could not be published; nil while they can.
// Events are accepted and run in either case.
func (q *Queue) PublishError() error { return q.publisher.LastError() }

// Counter counts what the program emits; nil when nothing is counted. See package minutes.
func (q *Queue) Counter() Counter { return q.counter }

// Limits returns what bounds the events that may be emitted, with its defaults filled in.
func (q *Queue) Limits() Limits { return q.limits }

// Logger returns the configured logger, for the parts that are built on the queue.
func (q *Queue) Logger() *zap.Logger { return q.publisher.log }

// Notify publishes notifications of events whose rows are committed, and waits until they are
// published or pending, for PublishTimeout at most, or until ctx ends.
func (q *Queue) Notify(ctx context.Context, notifications []Notification) {
	q.publisher.publish(ctx, notifications)
}

// NotifyEvents is Notify for events that may run now, without their trace contexts.
func (q *Queue) NotifyEvents(ctx context.Context, events []Event) {
	notifications := make([]Notification, len(events))
	for i := range events {
		notifications[i] = events[i].Notification()
	}
	q.Notify(ctx, notifications)
}

// NotifyPending publishes the pending notifications of the events; events that are gone are
// ignored. An error only means a delay: the relay publishes them. If the answer of the database is lost,
// or takes longer than 1.5 s, they are marked as pending again, which wakes the relay.
func (q *Queue) NotifyPending(ctx context.Context, ids []EventID) error {
	over := q.takes.Await(ids)
	notifications, err := q.store.TakePending(ctx, ids)
	over(refusal.Unanswered(err))
	if err = refusal.Report(q.Logger(), err); err != nil {
		return fmt.Errorf("notify %d events: %w", len(ids), err)
	}
	q.publisher.publish(ctx, notifications)
	return nil
}

// Close waits until no notification is being published and nothing is being inserted for emits
// whose callers no longer wait, or until ctx ends, searches a last time for the events of emits whose
// answers were lost, and hands in the last counts. Call it after the last emit, before the program
// exits. Without it nothing is lost but these counts; events may run later.
func (q *Queue) Close(ctx context.Context) error {
	if err := q.inserts.wait(ctx); err != nil {
		return err
	}
	if err := q.unanswered.close(ctx); err != nil {
		return err
	}
	if err := q.takes.Close(ctx); err != nil {
		return err
	}
	if err := q.publisher.wait(ctx); err != nil {
		return err
	}
	if q.counter != nil {
		_ = q.counter.HandIn(ctx) // logged; a program whose events are all accepted has not failed
	}
	return nil
}

// Emit accepts one event. When it returns without an error, the event is committed and will run
// (I1), whatever happens to its notification. It blocks for one round trip to the database, for two
// when many emit at once and share inserts, and then at most PublishTimeout for the notification.
// When ctx ends during the insert, or its answer is lost, the event may be committed or not; if it is,
// it will run. An *InvalidError says what is
// wrong with the event; nothing is written.
func (q *Queue) Emit(ctx context.Context, event NewEvent) (EventID, error) {
	ids, err := q.EmitMany(ctx, []NewEvent{event})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// EmitMany is Emit for many events: all are committed or none. It returns their
// ids in the order given and sends at most one statement per 1,000 events, all
// of them in one round trip.
func (q *Queue) EmitMany(ctx context.Context, events []NewEvent) ([]EventID, error) {
	inserted, err := q.emitMany(ctx, events)
	return eventIDs(inserted), err
}

func (q *Queue) emitMany(ctx context.Context, events []NewEvent) ([]Inserted, error) {
	if q.middleware != nil {
		return q.through(ctx, events, q.emitNow)
	}
	return q.emitNow(ctx, events)
}

// emitNow is emitMany without the middleware.
func (q *Queue) emitNow(ctx context.Context, events []NewEvent) ([]Inserted, error) {
	traceparent := trace.Parent(ctx)
	events, err := q.accepted(ctx, traceparent, events)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	inserted, err := q.inserts.emit(ctx, traceparent, events)
	if err != nil {
		return nil, fmt.Errorf("emit %d events: %w", len(events), err)
	}
	q.publisher.publish(ctx, toNotify(traceparent, events, inserted))
	q.publisher.probe(ctx, Notification{Event: inserted[0].ID, Canvas: events[0].Canvas})
	return inserted, nil
}

// accepted returns the events as they are inserted, or an *InvalidError: with the queue's canvas,
// module and modifier where they name none, and with what they inherit in ctx, whose trace context
// is traceparent. It does not change the caller's slice.
func (q *Queue) accepted(ctx context.Context, traceparent string, events []NewEvent) ([]NewEvent, error) {
	events = addressed(events, &q.missing)
	if err := q.limits.CheckEvents(events, time.Now()); err != nil {
		return nil, err
	}
	heritage := heritageOf(ctx, traceparent)
	if heritage.none() {
		return events, nil
	}
	events = slices.Clone(events)
	for i := range events {
		if err := heritage.give(&events[i]); err != nil {
			return nil, &InvalidError{Index: i, Field: "attributes", Problem: err.Error()}
		}
	}
	return events, nil
}

func eventIDs(inserted []Inserted) []EventID {
	if len(inserted) == 0 {
		return nil
	}
	ids := make([]EventID, len(inserted))
	for i, row := range inserted {
		ids[i] = row.ID
	}
	return ids
}

// toNotify makes the notifications that the caller of Insert has to publish.
func toNotify(parent string, events []NewEvent, inserted []Inserted) []Notification {
	notifications := make([]Notification, 0, len(inserted))
	for i, row := range inserted {
		if row.MustNotify {
			notifications = append(notifications, Notification{Event: row.ID, Canvas: events[i].Canvas, Traceparent: parent})
		}
	}
	return notifications
}
