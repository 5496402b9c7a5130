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

// Store is what Operations need of a database; pgstore.Store is one.
type Store interface {
	ChangeStore
	RequeueStore
	RetryStore

	// Replay emits events of event_log with a status again, the first of them due at from or now, each of the others
	// a time of every later. report is called in the same transaction with what was emitted: an error from it
	// undoes that. So whoever reports how far it came emits nothing twice, whatever fails.
	//
	// Events that the database refuses to write are left out, and returned (I15); then there are several
	// transactions, in the order of the ids. ids have to be in order.
	Replay(ctx context.Context, ids []eventqueue.EventID, status string, from time.Time, every time.Duration,
		report func(tx pgsession.DB, some Replayed) error) ([]refusal.Refused[eventqueue.EventID], error)

	// Operating is a store on the same database whose changes are those of an actor.
	Operating(by audit.Actor) Store

	// Pool and Schema are where the table of the operations is.
	Pool() *pgxpool.Pool
	Schema() pgsession.Schema
}

// Replayed are events that were emitted again.
type Replayed struct {
	// IDs are those of the new events, and Originals those of the events that they repeat, both in order.
	IDs, Originals []eventqueue.EventID
	Scopes         []eventqueue.Scope
	// Through is the last of the originals that were asked for, whether they were still there or not.
	Through eventqueue.EventID
	// Until is when the next event may be due; the zero time if nothing was emitted. Ahead is how far
	// ahead of the database's clock that is.
	Until time.Time
	Ahead time.Duration
}
