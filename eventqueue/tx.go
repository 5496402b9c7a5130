package eventqueue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/internal/trace"
)

// Tx is a unit of work: a transaction of the library's, in which the caller writes its own rows and
// emits events.
type Tx struct {
	DB
	queue    *Queue
	ending   *Event // that it completes; nil for none
	toNotify []Notification
	first    *Notification // of an event emitted in it
	began    time.Time     // its first emit
	emitted  []emitted     // counted once it has committed
}

// emitted are events of a transaction.
type emitted struct {
	events   []NewEvent
	inserted []Inserted
}

// Emit writes events in the transaction and returns their ids in the order
// given. They exist, and are notified, once the transaction has committed.
func (tx *Tx) Emit(ctx context.Context, events ...NewEvent) ([]EventID, error) {
	inserted, err := tx.emit(ctx, events)
	return eventIDs(inserted), err
}

func (tx *Tx) emit(ctx context.Context, events []NewEvent) ([]Inserted, error) {
	if tx.queue.middleware != nil {
		return tx.queue.through(ctx, events, tx.insert)
	}
	return tx.insert(ctx, events)
}

func (tx *Tx) insert(ctx context.Context, events []NewEvent) ([]Inserted, error) {
	q, traceparent := tx.queue, trace.Parent(ctx)
	events, err := q.accepted(ctx, traceparent, events)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	if len(tx.emitted) == 0 {
		tx.began = time.Now()
	}
	var inserted []Inserted
	if tx.ending == nil {
		inserted, err = q.store.Insert(ctx, tx.DB, events, q.mode())
	} else {
		inserted, err = q.store.InsertEnding(ctx, tx.DB, tx.ending.ID, events, q.mode())
	}
	if err != nil {
		return nil, fmt.Errorf("emit %d events in a transaction: %w", len(events), err)
	}
	tx.toNotify = append(tx.toNotify, toNotify(traceparent, events, inserted)...)
	tx.first = &Notification{Event: inserted[0].ID, Canvas: events[0].Canvas}
	tx.emitted = append(tx.emitted, emitted{events, inserted})
	return inserted, nil
}

// EmitHeirs is Emit, within CompleteTx, of events that go on for the one that it completes: they have its
// OrderingKey and Priority, and its UniqueKey holds until the last of them has ended, and for its UniqueFor after that.
func (tx *Tx) EmitHeirs(ctx context.Context, events ...NewEvent) ([]EventID, error) {
	if tx.ending == nil {
		return nil, errors.New("emit heirs: the transaction completes no event; use CompleteTx")
	}
	events = slices.Clone(events)
	for i := range events {
		events[i].OrderingKey, events[i].Priority = tx.ending.OrderingKey, tx.ending.Priority
	}
	ids, err := tx.Emit(ctx, events...)
	if err == nil && tx.ending.UniqueKey != "" {
		err = tx.queue.store.PassKey(ctx, tx.DB, tx.ending.ID, ids)
	}
	return ids, err
}

// events returns what was emitted in the transaction.
func (tx *Tx) events() [][]NewEvent {
	events := make([][]NewEvent, len(tx.emitted))
	for i, e := range tx.emitted {
		events[i] = e.events
	}
	return events
}

// InTx runs f in a transaction. When f returns nil the transaction commits and
// the notifications of the events emitted in it go out; when f returns an error
// or panics it rolls back and none does. f must not keep tx.
func (q *Queue) InTx(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	return q.InTxEnding(ctx, nil, f)
}

// InTxEnding is InTx for a transaction in which f completes an event. Workers use it for CompleteTx.
func (q *Queue) InTxEnding(ctx context.Context, ending *Event, f func(ctx context.Context, tx *Tx) error) error {
	var tx *Tx
	var commit *awaited
	err := q.store.InTx(ctx, func(ctx context.Context, db DB) error {
		tx = &Tx{DB: db, queue: q, ending: ending}
		err := f(ctx, tx)
		if err == nil {
			commit = q.unanswered.await(tx.began, tx.events()...)
		}
		return err
	})
	if commit != nil {
		commit.over(err)
	}
	if err != nil {
		return err
	}
	q.publisher.publish(ctx, tx.toNotify)
	if tx.first != nil {
		q.publisher.probe(ctx, *tx.first)
	}
	for _, e := range tx.emitted {
		q.countEmits(e.events, e.inserted)
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
	return q.emitPending(ctx, callersTx{"pgx", tx, nil}, events)
}

// EmitSQL is EmitTx for a transaction of database/sql, whatever its driver for
// Postgres.
func (q *Queue) EmitSQL(ctx context.Context, tx *sql.Tx, events ...NewEvent) (*Pending, error) {
	return q.emitPending(ctx, callersTx{databaseSQL, nil, tx}, events)
}

// callersTx is a transaction that the caller opened, with one of two libraries.
type callersTx struct {
	library string
	pgx     pgx.Tx
	sql     *sql.Tx // if the library is databaseSQL
}

const databaseSQL = "database/sql"

func (q *Queue) emitPending(ctx context.Context, tx callersTx, events []NewEvent) (*Pending, error) {
	var inserted []Inserted
	var err error
	if q.middleware != nil {
		inserted, err = q.through(ctx, events, func(ctx context.Context, events []NewEvent) ([]Inserted, error) {
			return q.insertPending(ctx, tx, events)
		})
	} else {
		inserted, err = q.insertPending(ctx, tx, events)
	}
	if err != nil {
		return nil, err
	}
	pending := &Pending{IDs: eventIDs(inserted), queue: q}
	for _, row := range inserted {
		pending.New = append(pending.New, !row.Repeat)
	}
	return pending, nil
}

func (q *Queue) insertPending(ctx context.Context, tx callersTx, events []NewEvent) (inserted []Inserted, err error) {
	events, err = q.accepted(ctx, trace.Parent(ctx), events)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	if tx.library == databaseSQL {
		inserted, err = q.store.InsertSQL(ctx, tx.sql, events, NotifyModeRelay)
	} else {
		inserted, err = q.store.Insert(ctx, tx.pgx, events, NotifyModeRelay)
	}
	if err != nil {
		return nil, fmt.Errorf("emit %d events in the caller's %s transaction: %w", len(events), tx.library, err)
	}
	q.countEmits(events, inserted) // also if the caller rolls back, which is not reported
	return inserted, nil
}
