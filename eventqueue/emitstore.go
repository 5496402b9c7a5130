package eventqueue

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
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

// EmitStore is the database as emitting uses it; pgstore.Store implements it.
type EmitStore interface {
	// Insert writes all the events or none and returns them in the order given. in is the
	// transaction to write in; nil means one of its own. An event whose UniqueKey is taken, in the
	// database or by an earlier one of the events, is not written but returned as a Repeat. Insert
	// waits for a key that another transaction is writing.
	Insert(ctx context.Context, in DB, events []NewEvent, mode NotifyMode) ([]Inserted, error)

	// InsertSQL is Insert within a transaction of database/sql.
	InsertSQL(ctx context.Context, in *sql.Tx, events []NewEvent, mode NotifyMode) ([]Inserted, error)

	// InsertEnding is Insert in a transaction that completes the event ending, whose UniqueKey counts as
	// free, unless another event holds it as well, which is an error. 0: it completes none.
	InsertEnding(ctx context.Context, in DB, ending EventID, events []NewEvent, mode NotifyMode) ([]Inserted, error)

	// PassKey has heirs, which were inserted in the same transaction, hold the UniqueKey of ending too.
	PassKey(ctx context.Context, in DB, ending EventID, heirs []EventID) error

	// InTx runs f in a transaction: commit when it returns nil, rollback
	// otherwise and on panic.
	InTx(ctx context.Context, f func(ctx context.Context, db DB) error) error

	// Unclaimed returns the notifications of events that were inserted with NotifyModeSelf, may be
	// those asked for, and are not claimed; of an ordering group only the first one. No scope may be
	// asked for twice. It writes nothing.
	Unclaimed(ctx context.Context, asked []Unanswered) ([]Notification, error)

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
	// MustNotify reports whether the caller has to publish a notification.
	MustNotify bool
	// Repeat reports whether no row was written: ID is the event that has the key.
	Repeat bool
}

// CountingStore is an EmitStore that takes in what a program counts; pgstore.Store is one.
type CountingStore interface {
	// NewCounter makes the counter of one program. jitter spreads what programs hand in over
	// their minute.
	NewCounter(jitter func(time.Duration) time.Duration, log *zap.Logger) Counter
}

// Counter counts emits by scope; minutes.Counter is the one. It is safe for concurrent use.
type Counter interface {
	// CountEmits counts a new event of each scope.
	CountEmits(scopes iter.Seq[Scope])
	// HandIn hands in what was counted since the last time, at once. It logs its failure.
	HandIn(ctx context.Context) error
}

// UnfitError means that a database or a notifier cannot be used as it is, and that waiting does not
// help: a wrong password, a missing right, a schema that is too old, a subscription that would lose
// notifications. Err describes what to do.
type UnfitError struct{ Err error }

// Error returns the text of Err.
func (e *UnfitError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnfitError) Unwrap() error { return e.Err }
