package eventqueue

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"eventsv2/internal/refusal"
	"eventsv2/internal/trace"
)

// DB is the part of a transaction that the code which runs in it may use. pgx.Tx is one.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// NotifyMode says who publishes the notifications of inserted events.
type NotifyMode int

const (
	// NotifyModeSelf has the inserting program publish, after the commit, those that
	// are due within MaxRequeue; their notified_at is set at once.
	NotifyModeSelf NotifyMode = iota
	// NotifyModeRelay leaves them pending, and the commit wakes the relay.
	NotifyModeRelay
	// NotifyModeLater leaves them pending because the program cannot publish. The commit wakes the
	// relay, and workers that find due events in the database.
	NotifyModeLater
)

// EmitStore is what emitting needs of the database; pgstore.Store is one.
type EmitStore interface {
	// Insert writes all the events or none and returns them in the order given. in is the
	// transaction to write in; nil means one of its own. An event whose UniqueKey is taken, in the
	// database or by an earlier one of the events, is not written but returned as a Repeat. Insert
	// waits for a key that another transaction is writing.
	Insert(ctx context.Context, in DB, events []NewEvent, mode NotifyMode) ([]Inserted, error)

	// InsertSQL is Insert within a transaction of database/sql.
	InsertSQL(ctx context.Context, in *sql.Tx, events []NewEvent, mode NotifyMode) ([]Inserted, error)

	// InTx runs f in a transaction: commit when it returns nil, rollback
	// otherwise and on panic.
	InTx(ctx context.Context, f func(ctx context.Context, db DB) error) error

	PendingStore
}

// PendingStore records which notifications are pending.
type PendingStore interface {
	// MarkPending marks the notifications of events as pending. It wakes the relay, and workers
	// that find due events in the database. Ids that are gone are ignored.
	MarkPending(ctx context.Context, ids []EventID) error

	// TakePending returns the pending notifications of those of the events that are due within
	// MaxRequeue, and marks them as published. The caller publishes them.
	TakePending(ctx context.Context, ids []EventID) ([]Notification, error)
}

// Inserted is one row that Insert wrote.
type Inserted struct {
	ID EventID
	// MustNotify says that the caller has to publish a notification.
	MustNotify bool
	// Repeat says that no row was written: ID is the event that has the key.
	Repeat bool
}

// QueueConfig configures a Queue. The zero value is ready to use.
type QueueConfig struct {
	Limits Limits

	// Canvas, Module and Modifier are those of events that name none, in every form of
	// emit. Default (zero): an event that lacks one is refused.
	Canvas   CanvasID
	Module   string
	Modifier string

	// PublishTimeout bounds one request to the notifier. Default (0): 2 s.
	PublishTimeout time.Duration

	// PublishRest is the time between two probes of a notifier that failed; until one succeeds, no
	// emit waits for the notifier, and its notifications are pending from the start. Default (0): 1
	// s.
	PublishRest time.Duration

	// Logger gets an entry when publishing begins to fail and when it succeeds again. Default
	// (nil): none.
	Logger *zap.Logger
}

func (c QueueConfig) withDefaults() QueueConfig {
	c.Limits = c.Limits.withDefaults()
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 2*time.Second)
	c.PublishRest = cmp.Or(c.PublishRest, defaultRest)
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
	return c.Limits.Validate()
}

// Queue accepts events. It is safe for concurrent use, and has no connection and no goroutine while
// nothing is emitted.
type Queue struct {
	store     EmitStore
	limits    Limits
	missing   NewEvent // its Canvas, Module and Modifier are those of events without
	inserts   *groupCommit
	publisher *Sender
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
		store:     store,
		limits:    config.Limits,
		missing:   NewEvent{Canvas: config.Canvas, Module: config.Module, Modifier: config.Modifier},
		publisher: NewSender(notifier, store, config.PublishTimeout, config.PublishRest, config.Logger),
	}
	q.inserts = &groupCommit{insert: q.insert, notify: q.notifyLater, came: make(chan struct{}, 1)}
	return q, nil
}

// notifyLater publishes for an emitter that no longer waits.
func (q *Queue) notifyLater(parent string, events []NewEvent, inserted []Inserted) {
	nobody, leave := context.WithCancel(context.Background())
	leave() // then publish does not wait, and publishes all the same
	q.publisher.publish(nobody, toNotify(parent, events, inserted))
	q.publisher.probe(nobody, Notification{Event: inserted[0].ID, Canvas: events[0].Canvas})
}

// PublishError returns why the last notifications could not be published; nil while they can.
// Events are accepted and run in either case.
func (q *Queue) PublishError() error { return q.publisher.LastError() }

// Logger returns the configured logger, for the parts that are built on the queue.
func (q *Queue) Logger() *zap.Logger { return q.publisher.log }

// Notify publishes notifications of events whose rows are committed, and waits until they are
// published or pending, for PublishTimeout at most, or until ctx ends.
func (q *Queue) Notify(ctx context.Context, notifications []Notification) {
	q.publisher.publish(ctx, notifications)
}

// NotifyPending publishes the pending notifications of the events; events that are gone are
// ignored. An error only means a delay: the relay publishes them.
func (q *Queue) NotifyPending(ctx context.Context, ids []EventID) error {
	notifications, err := q.store.TakePending(ctx, ids)
	if err = refusal.Report(q.Logger(), err); err != nil {
		return fmt.Errorf("notify %d events: %w", len(ids), err)
	}
	q.publisher.publish(ctx, notifications)
	return nil
}

// Close waits until no notification is being published and nothing is being inserted for emits
// whose callers no longer wait, or until ctx ends. Call it after the last emit, before the program
// exits. Without it nothing is lost, but events may run later.
func (q *Queue) Close(ctx context.Context) error {
	if err := q.inserts.wait(ctx); err != nil {
		return err
	}
	return q.publisher.wait(ctx)
}

// Emit accepts one event. When it returns without an error, the event is committed and will run
// (I1), whatever happens to its notification. It blocks for one round trip to the database, for two
// when many emit at once and share inserts, and then at most PublishTimeout for the notification.
// When ctx ends during the insert, the event may be committed or not. An *InvalidError says what is
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
	events = addressed(events, &q.missing)
	if err := q.limits.CheckEvents(events, time.Now()); err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, nil
	}
	inserted, err := q.inserts.emit(ctx, events)
	if err != nil {
		return nil, fmt.Errorf("emit %d events: %w", len(events), err)
	}
	q.publisher.publish(ctx, toNotify(trace.Parent(ctx), events, inserted))
	q.publisher.probe(ctx, Notification{Event: inserted[0].ID, Canvas: events[0].Canvas})
	return inserted, nil
}

// Tx is a unit of work: a transaction of the library's, in which the caller writes its own rows and
// emits events.
type Tx struct {
	DB
	queue    *Queue
	toNotify []Notification
	first    *Notification // of an event emitted in it
}

// Emit writes events in the transaction and returns their ids in the order
// given. They exist, and are notified, once the transaction has committed.
func (tx *Tx) Emit(ctx context.Context, events ...NewEvent) ([]EventID, error) {
	inserted, err := tx.emit(ctx, events)
	return eventIDs(inserted), err
}

func (tx *Tx) emit(ctx context.Context, events []NewEvent) ([]Inserted, error) {
	q := tx.queue
	events = addressed(events, &q.missing)
	if err := q.limits.CheckEvents(events, time.Now()); err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, nil
	}
	inserted, err := q.store.Insert(ctx, tx.DB, events, q.mode())
	if err != nil {
		return nil, fmt.Errorf("emit %d events in a transaction: %w", len(events), err)
	}
	tx.toNotify = append(tx.toNotify, toNotify(trace.Parent(ctx), events, inserted)...)
	tx.first = &Notification{Event: inserted[0].ID, Canvas: events[0].Canvas}
	return inserted, nil
}

// InTx runs f in a transaction. When f returns nil the transaction commits and
// the notifications of the events emitted in it go out; when f returns an error
// or panics it rolls back and none does. f must not keep tx.
func (q *Queue) InTx(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	var tx *Tx
	err := q.store.InTx(ctx, func(ctx context.Context, db DB) error {
		tx = &Tx{DB: db, queue: q}
		return f(ctx, tx)
	})
	if err != nil {
		return err
	}
	q.publisher.publish(ctx, tx.toNotify)
	if tx.first != nil {
		q.publisher.probe(ctx, *tx.first)
	}
	return nil
}

// Pending are events that were emitted in the caller's own transaction.
type Pending struct {
	// IDs are in the order of the emit.
	IDs []EventID

	// New says of each whether it was inserted; false means that its id is that of an earlier event
	// with its UniqueKey.
	New []bool

	queue *Queue
}

// Notify publishes the notifications of the events at once. Call it after the commit. Without it,
// or when it fails, the relay publishes them. An error does not undo the emit; it only means a
// delay. Events that were rolled back are ignored.
func (p *Pending) Notify(ctx context.Context) error {
	return p.queue.NotifyPending(ctx, p.IDs)
}

// EmitTx emits within a transaction that the caller opened with pgx and will commit: the events
// exist if and only if it commits. Their notifications are pending from the commit on, which wakes
// the relay; Pending.Notify is faster.
func (q *Queue) EmitTx(ctx context.Context, tx pgx.Tx, events ...NewEvent) (*Pending, error) {
	return q.emitPending(events, "pgx", func(events []NewEvent) ([]Inserted, error) {
		return q.store.Insert(ctx, tx, events, NotifyModeRelay)
	})
}

// EmitSQL is EmitTx for a transaction of database/sql, whatever its driver for
// Postgres.
func (q *Queue) EmitSQL(ctx context.Context, tx *sql.Tx, events ...NewEvent) (*Pending, error) {
	return q.emitPending(events, "database/sql", func(events []NewEvent) ([]Inserted, error) {
		return q.store.InsertSQL(ctx, tx, events, NotifyModeRelay)
	})
}

func (q *Queue) emitPending(events []NewEvent, kind string, insert func([]NewEvent) ([]Inserted, error)) (*Pending, error) {
	events = addressed(events, &q.missing)
	if err := q.limits.CheckEvents(events, time.Now()); err != nil {
		return nil, err
	}
	pending := &Pending{queue: q}
	if len(events) == 0 {
		return pending, nil
	}
	inserted, err := insert(events)
	if err != nil {
		return nil, fmt.Errorf("emit %d events in the caller's %s transaction: %w", len(events), kind, err)
	}
	pending.IDs = eventIDs(inserted)
	for _, row := range inserted {
		pending.New = append(pending.New, !row.Repeat)
	}
	return pending, nil
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
