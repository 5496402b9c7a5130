package maintenance

import (
	"context"
	"time"

	"eventsv2/eventqueue"
)

// statementTakes bounds one statement, whatever happens to the connection.
const statementTakes = 30 * time.Second

// AwaitTake is called with the events whose pending notifications a store is about to take, and the
// function that it returns when the statement that takes them has an answer (nil) or has failed. So
// the caller of the store knows what a statement has taken whose answer is lost or does not come.
// Otherwise it would not be published until it counts as lost. Both return at once.
type AwaitTake func(ids []eventqueue.EventID) (over func(err error))

// RelayStore is the database as the relay uses it; pgstore.Store implements it. If it is a UniqueStore
// as well, the relay removes its old keys; if it is a LostReporter, the relay reports lost
// notifications to it.
type RelayStore interface {
	eventqueue.PendingStore

	// TakeDue marks as published, and returns, at most limit pending notifications of events due
	// within the given time: those of high priority, then the earliest. While there are more, each canvas
	// gets the same number from call to call. Those of low priority come last, and a LowStore leaves some. It skips rows that another transaction is writing, and makes up for
	// them with others: if it returns fewer than limit, no other event was due that it could have
	// taken. await may be nil. What it returns beside a *refusal.Error was taken.
	TakeDue(ctx context.Context, within time.Duration, limit int, await AwaitTake) ([]eventqueue.Notification, error)

	// Sweep reads no more than limit rows with ids above after. Of these it marks as published, and
	// returns, those whose notification is lost: due, without a rule, not locked for less than
	// the lock timeout, and either locked until after the last notification, or last notified longer ago
	// than lostAfter and than the time from being due to the last notification, so that the interval
	// doubles each time.
	Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (Swept, error)

	// TakeRound does the same without reading every event, for the next part of a round after the
	// given place: for a few of the oldest and of the newest events of some handlers, and for more
	// where these are lost; then for those at the front of some ordering groups; then for some of
	// those whose lock has been renewed. next is the zero RoundPlace at the end of the round. It
	// reads nothing of a handler that is paused or blocked.
	TakeRound(ctx context.Context, after RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next RoundPlace, err error)

	// LeavePending makes notifications pending that TakeRound or Sweep has marked as published, and
	// that the relay does not publish yet. Unlike MarkPending it wakes no relay: this one continues with
	// them. It skips rows that another transaction is writing.
	LeavePending(ctx context.Context, ids []eventqueue.EventID) error

	// Listen calls wake once it listens, and whenever a transaction commits with pending
	// notifications, until ctx ends or the connection breaks or no longer hears.
	Listen(ctx context.Context, wake func()) error
}

// LowStore is implemented by a RelayStore that lets events of low priority go a few at a time, as long as
// those before them have not begun; pgstore.Store is one.
type LowStore interface {
	// LowRest is how long it is until TakeDue may find events that it has left; 0 if it has left none.
	LowRest() time.Duration
}

// lowRest is LowRest of a store that has it.
func lowRest(store RelayStore) time.Duration {
	if low, ok := store.(LowStore); ok {
		return low.LowRest()
	}
	return 0
}

// AwaitingStore is implemented by a RelayStore that finds lost notifications before it takes them;
// pgstore.Store is one. What a search may have taken whose answer is lost is then marked as pending
// again (I19). With another store it is found again when it counts as lost again.
type AwaitingStore interface {
	// Awaiting returns the same searches, with await for each of their statements that take something.
	Awaiting(await AwaitTake) Searches
}

// Searches are the searches for lost notifications of a RelayStore. TakeLost is Sweep without what
// only a relay has to know.
type Searches interface {
	searches
	TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (lost []eventqueue.Notification, next eventqueue.EventID, err error)
}

// searches are the relay's.
type searches interface {
	Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (Swept, error)
	TakeRound(ctx context.Context, after RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next RoundPlace, err error)
}

func searchesOf(store RelayStore, await AwaitTake) searches {
	if awaiting, ok := store.(AwaitingStore); ok {
		return awaiting.Awaiting(await)
	}
	return store
}

// LostReporter is implemented by a RelayStore that can reach workers without the notifier;
// pgstore.Store is one.
type LostReporter interface {
	// ReportLost reports to workers that notifications are lost, so that those whose notifier has
	// delivered nothing for a while find the events in the database. It blocks at most until ctx
	// ends. The relay calls it once for each page with lost notifications, when they are published
	// again, and never without any.
	ReportLost(ctx context.Context) error
}

// RoundPlace is how far a round in search of lost notifications has come. The zero value is the
// beginning, and the end.
type RoundPlace struct {
	// Stage is the current part of the round.
	Stage RoundStage
	// Scope is the last handler that it has read; for ordering groups, the last canvas.
	Scope eventqueue.Scope
	// Group is the last ordering group of that canvas, as the store spells it.
	Group string
	// Run is the last event whose lock has been renewed.
	Run eventqueue.EventID
}

// RoundStage is a part of a round.
type RoundStage int

// A whole round goes by handlers first, then by ordering groups, then by runs. The relay goes by the
// three at once.
const (
	RoundOfHandlers RoundStage = iota
	RoundOfGroups
	RoundOfRuns
)

// Swept is the result of one page of a sweep.
type Swept struct {
	// Lost are the notifications to publish.
	Lost []eventqueue.Notification
	// Next is the last id read, 0 when there are no more rows.
	Next eventqueue.EventID
	// Read is how many rows it has read.
	Read int
	// Live is how many of the rows run, or could run now.
	Live int
	// Counted reports whether event_minutes has rows of the current minute or the one before it.
	Counted bool
	// LockTimeout is how long a lock of the database is valid without being renewed.
	LockTimeout time.Duration
	// Ahead are some of the events that are locked until far in the future: the lock was
	// written by hand, and has to be undone.
	Ahead []eventqueue.EventID
}
