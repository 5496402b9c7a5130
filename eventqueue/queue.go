package eventqueue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
)

// DB is what a transaction offers to the code that runs in it. pgx.Tx is one.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// Announce says who sees to the notifications of inserted events.
type Announce int

const (
	// AnnounceSelf has the inserting program publish, after the commit, those that
	// are due within MaxRequeue; their notified_at is set at once.
	AnnounceSelf Announce = iota
	// AnnounceRelay leaves them owed, and the commit wakes the relay.
	AnnounceRelay
	// AnnounceLater leaves them owed, for the relay to find in its own time.
	AnnounceLater
)

// EmitStore is what emitting needs of the database; pgstore.Store is one.
type EmitStore interface {
	// Insert writes all the events or none and returns them in the order given.
	// in is the transaction to write in; nil means one of its own. An event whose
	// UniqueKey holds, or stands earlier among the events, is answered for and not
	// written; for a key that another transaction is writing, Insert waits.
	Insert(ctx context.Context, in DB, events []NewEvent, announce Announce) ([]Inserted, error)

	// InsertSQL is Insert within a transaction of database/sql.
	InsertSQL(ctx context.Context, in *sql.Tx, events []NewEvent, announce Announce) ([]Inserted, error)

	// InTx runs f in a transaction: commit when it returns nil, rollback
	// otherwise and on panic.
	InTx(ctx context.Context, f func(ctx context.Context, db DB) error) error

	OwedStore
}

// OwedStore keeps the account of notifications that are owed.
type OwedStore interface {
	// Owe marks events as owed a notification; ids that are gone are ignored.
	Owe(ctx context.Context, ids []EventID) error

	// TakeOwed marks those of the events that are owed a notification and due
	// within MaxRequeue as published, and returns them for publishing.
	TakeOwed(ctx context.Context, ids []EventID) ([]Notification, error)
}

// Inserted is one row that Insert wrote.
type Inserted struct {
	ID EventID
	// Announced says that the caller has to publish a notification.
	Announced bool
	// Repeat says that no row was written: ID is the event that has the key.
	Repeat bool
}

// QueueConfig configures a Queue. The zero value is ready to use.
type QueueConfig struct {
	Limits Limits

	// PublishTimeout bounds one request to the notifier. Default (0): 2 s.
	PublishTimeout time.Duration

	// PublishRest is the time between two probes of a notifier that failed; until
	// one succeeds no emit waits for it, and the rows are owed from the start.
	// Default (0): 5 s.
	PublishRest time.Duration

	// Logger gets a warning when publishing fails. Default (nil): none.
	Logger *zap.Logger
}

func (c QueueConfig) withDefaults() QueueConfig {
	c.Limits = c.Limits.withDefaults()
	setDefault(&c.PublishTimeout, 2*time.Second)
	setDefault(&c.PublishRest, 5*time.Second)
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the first field that makes no sense.
func (c QueueConfig) Validate() error {
	if c.PublishTimeout < 0 {
		return fmt.Errorf("PublishTimeout is %s: it must not be negative", c.PublishTimeout)
	}
	if c.PublishRest < 0 {
		return fmt.Errorf("PublishRest is %s: it must not be negative", c.PublishRest)
	}
	return c.Limits.Validate()
}

// Queue takes events in. It is safe for concurrent use and holds no connection
// and no goroutine while nothing is emitted.
type Queue struct {
	store     EmitStore
	limits    Limits
	inserts   *groupCommit
	publisher *publisher
}

// New makes a Queue on a database and a doorbell.
func New(store EmitStore, notifier Publisher, config QueueConfig) (*Queue, error) {
	if store == nil || notifier == nil {
		return nil, errors.New("eventqueue.New: store and notifier must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("eventqueue.New: %w", err)
	}
	config = config.withDefaults()
	q := &Queue{
		store:  store,
		limits: config.Limits,
		publisher: &publisher{
			notifier: notifier,
			owe:      store.Owe,
			timeout:  config.PublishTimeout,
			rest:     config.PublishRest,
			log:      config.Logger,
		},
	}
	q.inserts = &groupCommit{insert: q.insert, notify: q.notifyLater, came: make(chan struct{}, 1)}
	return q, nil
}

func (q *Queue) insert(ctx context.Context, events []NewEvent) ([]Inserted, error) {
	return q.store.Insert(ctx, nil, events, q.announce())
}

// notifyLater publishes for an emitter who has left.
func (q *Queue) notifyLater(parent string, events []NewEvent, inserted []Inserted) {
	nobody, leave := context.WithCancel(context.Background())
	leave() // publish waits for nothing then, and publishes all the same
	q.publisher.publish(nobody, announced(parent, events, inserted))
}

// Close waits until every notification that is being published is out or owed,
// and until nothing is being inserted for emits that were given up, or until ctx
// ends. Call it after the last emit, before the program exits; what it would have
// waited for is not lost without it, only later.
func (q *Queue) Close(ctx context.Context) error {
	if err := q.inserts.wait(ctx); err != nil {
		return err
	}
	return q.publisher.wait(ctx)
}

// Emit accepts one event: when it returns without an error the event is
// committed and will run (I1), whatever happens to its notification. It blocks
// for one round trip to the database, for two when many emit at once and share
// inserts, and then at most PublishTimeout for the notification. When ctx ends
// during the insert, the event may be committed or not. An *InvalidError says
// what is wrong with the event; nothing is written.
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
	q.publisher.publish(ctx, announced(traceparent(ctx), events, inserted))
	q.publisher.probe(ctx, Notification{Event: inserted[0].ID, Canvas: events[0].Canvas})
	return inserted, nil
}

// Tx is a unit of work: a transaction of the library's, in which the caller
// writes what is its own and emits what follows from it.
type Tx struct {
	DB
	queue     *Queue
	announced []Notification
	first     *Notification // of an event emitted in it
}

// Emit writes events in the transaction and returns their ids in the order
// given. They exist, and are notified, once the transaction has committed.
func (tx *Tx) Emit(ctx context.Context, events ...NewEvent) ([]EventID, error) {
	inserted, err := tx.emit(ctx, events)
	return eventIDs(inserted), err
}

func (tx *Tx) emit(ctx context.Context, events []NewEvent) ([]Inserted, error) {
	q := tx.queue
	if err := q.limits.CheckEvents(events, time.Now()); err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, nil
	}
	inserted, err := q.store.Insert(ctx, tx.DB, events, q.announce())
	if err != nil {
		return nil, fmt.Errorf("emit %d events in a transaction: %w", len(events), err)
	}
	tx.announced = append(tx.announced, announced(traceparent(ctx), events, inserted)...)
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
	q.publisher.publish(ctx, tx.announced)
	if tx.first != nil {
		q.publisher.probe(ctx, *tx.first)
	}
	return nil
}

// Pending are events that were emitted in a transaction of the caller's.
type Pending struct {
	// IDs are in the order of the emit.
	IDs []EventID

	// New tells of each whether it was inserted; false is the event that had its
	// UniqueKey already.
	New []bool

	queue *Queue
}

// Notify publishes the notifications of the events at once. Call it after the
// commit; without it, and for what it fails to do, the relay publishes them. It
// never fails the emit: what the error reports is a delay. Events that were
// rolled back are ignored.
func (p *Pending) Notify(ctx context.Context) error {
	notifications, err := p.queue.store.TakeOwed(ctx, p.IDs)
	if err != nil {
		return fmt.Errorf("notify %d events: %w", len(p.IDs), err)
	}
	p.queue.publisher.publish(ctx, notifications)
	return nil
}

// EmitTx emits within a transaction that the caller opened with pgx and will
// commit: the events exist if and only if it commits. Their notifications are
// owed from the commit on, which wakes the relay; Pending.Notify is faster.
func (q *Queue) EmitTx(ctx context.Context, tx pgx.Tx, events ...NewEvent) (*Pending, error) {
	return q.emitOwed(events, "pgx", func() ([]Inserted, error) {
		return q.store.Insert(ctx, tx, events, AnnounceRelay)
	})
}

// EmitSQL is EmitTx for a transaction of database/sql, whatever its driver for
// Postgres.
func (q *Queue) EmitSQL(ctx context.Context, tx *sql.Tx, events ...NewEvent) (*Pending, error) {
	return q.emitOwed(events, "database/sql", func() ([]Inserted, error) {
		return q.store.InsertSQL(ctx, tx, events, AnnounceRelay)
	})
}

func (q *Queue) emitOwed(events []NewEvent, kind string, insert func() ([]Inserted, error)) (*Pending, error) {
	if err := q.limits.CheckEvents(events, time.Now()); err != nil {
		return nil, err
	}
	pending := &Pending{queue: q}
	if len(events) == 0 {
		return pending, nil
	}
	inserted, err := insert()
	if err != nil {
		return nil, fmt.Errorf("emit %d events in the caller's %s transaction: %w", len(events), kind, err)
	}
	pending.IDs = eventIDs(inserted)
	for _, row := range inserted {
		pending.New = append(pending.New, !row.Repeat)
	}
	return pending, nil
}

// announce is AnnounceSelf unless the notifier is known to be down: then nobody
// waits for it.
func (q *Queue) announce() Announce {
	if q.publisher.up() {
		return AnnounceSelf
	}
	return AnnounceLater
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

// announced makes the notifications that the caller of Insert has to publish.
func announced(parent string, events []NewEvent, inserted []Inserted) []Notification {
	notifications := make([]Notification, 0, len(inserted))
	for i, row := range inserted {
		if row.Announced {
			notifications = append(notifications, Notification{Event: row.ID, Canvas: events[i].Canvas, Traceparent: parent})
		}
	}
	return notifications
}
