package operate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/refusal"
)

// SelectStore finds the events of a filter; pgstore.Store implements it.
type SelectStore interface {
	// LastQueued is the highest id in the queue, 0 when it is empty.
	LastQueued(ctx context.Context) (eventqueue.EventID, error)

	// Select reads no more than limit events of the queue, by id, that are above after and not above
	// last, and returns those that a valid filter selects. next is the last one that it read, 0 when
	// there are no more. It locks nothing.
	Select(ctx context.Context, filter EventFilter, after, last eventqueue.EventID, limit int) (ids []eventqueue.EventID, next eventqueue.EventID, err error)

	// LastLogged and SelectLogged are the same for event_log.
	LastLogged(ctx context.Context) (eventqueue.EventID, error)
	SelectLogged(ctx context.Context, filter EventFilter, after, last eventqueue.EventID, limit int) (ids []eventqueue.EventID, next eventqueue.EventID, err error)
}

// ChangeStore is the database as a Changer uses it; pgstore.Store implements it.
//
// When the database refuses to write the row of an event, that costs no other event anything: the
// result of that event is ChangeRefused (I15). The results beside an error are those of the events
// that were changed before it occurred.
type ChangeStore interface {
	SelectStore

	// Remove takes events that no worker runs out of the queue. With a cancellation they go to event_log
	// as CANCELLED, in the same statement, and the workers of the others are asked to end their runs. It answers for every id once, in order. It reads and writes
	// each event under a lock of its row, by the database's clock; a lock that has expired is none,
	// and its holder can no longer write (I5). A unique key is released as by a completion, and
	// ordering groups advance: to the events that it returns. A *refusal.Error says which of these
	// the database refuses to write, as with worker.Store's Complete.
	Remove(ctx context.Context, ids []eventqueue.EventID, cancellation *Cancellation) (results []Changed, advanced []eventqueue.Event, err error)

	// Edit changes events that no worker runs, as Remove decides that, and clears locks that have
	// expired, as Requeue does. It answers for every id once, in order. It never changes
	// attempts. A notification of an event with a new time is pending.
	Edit(ctx context.Context, edit Edit, ids []eventqueue.EventID) ([]Changed, error)

	// Requeue makes events of the queue due, clears locks that have expired, and marks a
	// notification of each as pending; it answers for every id once, in order. It reads and writes
	// each event under a lock of its row, by the database's clock and lock timeout. It never changes
	// attempts.
	Requeue(ctx context.Context, ids []eventqueue.EventID) ([]Changed, error)

	// Retry moves failed and cancelled events from event_log back into the queue, changed by the edit,
	// which may be the zero Edit: under the same id, due now or when the edit says, with no retry used
	// and a notification pending. It answers for every id once, in order. It never changes attempts.
	Retry(ctx context.Context, edit Edit, ids []eventqueue.EventID) ([]Changed, error)

	// DeleteLogged deletes failed and cancelled events from event_log, and answers for those that are gone,
	// and those that the database refuses to delete.
	DeleteLogged(ctx context.Context, ids []eventqueue.EventID) ([]Changed, error)
}

// Store is the database as Operations use it; pgstore.Store implements it.
type Store interface {
	ChangeStore

	// Replay emits events of event_log with a status again, the first of them due at from or now, each of the others
	// a time of every later. report is called in the same transaction with what was emitted: an error from it
	// undoes that. So whoever reports how far it came emits nothing twice, whatever fails.
	//
	// Events that the database refuses to write are left out, and returned (I15); then there are several
	// transactions, in the order of the ids. ids have to be in order.
	Replay(ctx context.Context, ids []eventqueue.EventID, status string, from time.Time, every time.Duration,
		report func(tx pgsession.DB, some Replayed) error) ([]refusal.Refused[eventqueue.EventID], error)

	// Operating returns a store on the same database that attributes changes to an actor.
	Operating(by audit.Actor) Store

	// Pool and Schema are where the table of the operations is.
	Pool() *pgxpool.Pool
	Schema() pgsession.Schema
}

// Replayed are events that were emitted again.
type Replayed struct {
	// IDs are the ids of the new events, and Originals of the events that they repeat, both in order.
	IDs, Originals []eventqueue.EventID
	Scopes         []eventqueue.Scope
	// Through is the last of the originals that were asked for, whether they were still there or not.
	Through eventqueue.EventID
	// Until is when the next event may be due; the zero time if nothing was emitted. Ahead is how far
	// ahead of the database's clock that is.
	Until time.Time
	Ahead time.Duration
}
