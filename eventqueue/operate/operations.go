package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/sqlstate"
)

// OperationState is how far an operation has come.
type OperationState string

// The states of an operation.
const (
	OperationCounted OperationState = "counted" // it begins when it is confirmed
	OperationRunning OperationState = "running" // it goes on, or will when a program is there that runs operations
	OperationDone    OperationState = "done"    // all of its events have been tried
	OperationStopped OperationState = "stopped" // stopped by a user, or left by all programs for a day; what was done stays done
	OperationFailed  OperationState = "failed"  // it has failed too often; the logs of the programs say why
)

// ConfirmWithin is for how long a count can be confirmed.
const ConfirmWithin = 10 * time.Minute

// Operation is a change of many events.
type Operation struct {
	ID     uuid.UUID
	Change Change
	// By is the identity that counted and confirmed it.
	By audit.Actor
	// Counted is how many events the filter selected.
	Counted int
	State   OperationState
	// CountedAt, StartedAt and EndedAt are by the clock of the database; the zero time is not yet.
	CountedAt, StartedAt, EndedAt time.Time
	// ExpiresAt is until when it can be confirmed.
	ExpiresAt time.Time
	Progress
}

// Progress counts the events of an operation by their result. The sum may stay below Counted: events may have
// ended, or changed, since they were counted.
type Progress struct {
	// Changed are as it was asked for.
	Changed int
	// Running were refused because a worker runs them, or, of VerbCancel, have a worker that was asked to end the run; Busy because another transaction was writing them, and
	// Refused by the database.
	Running, Busy, Refused int
}

// The errors of Confirm and Stop.
var (
	// ErrUnknownOperation is returned for an operation that does not exist, or that another identity counted.
	ErrUnknownOperation = errors.New("there is no such operation")
	// ErrCountExpired is returned for one that was counted too long ago.
	ErrCountExpired = errors.New("the count is too old: count again")
)

// Operations runs the operations of one database. It is safe for concurrent use.
type Operations struct {
	store Store
	queue *eventqueue.Queue
	log   *zap.Logger
	pool  *pgsession.Pool
	wake  chan struct{}
}

// NewOperations makes Operations. The queue publishes the notifications of what may run; a nil logger is none.
func NewOperations(store Store, queue *eventqueue.Queue, log *zap.Logger) (*Operations, error) {
	if store == nil || queue == nil {
		return nil, errors.New("operate.NewOperations: store and queue must not be nil")
	}
	if log == nil {
		log = zap.NewNop()
	}
	return &Operations{store: store, queue: queue, log: log, pool: pgsession.On(store.Pool(), store.Schema()), wake: make(chan struct{}, 1)}, nil
}

const operationColumns = `o.id, o.change, o.actor, o.identity, o.source, o.via, o.counted, o.state, o.counted_at, o.started_at, o.ended_at, o.expires_at,
    o.changed, o.running, o.busy, o.refused`

const insertSQL = `
INSERT INTO bulk_operations AS o (id, expires_at, identity, actor, source, via, canvas_id, change, counted, last_id, state)
VALUES ($1, clock_timestamp() + $2::interval, $3, $4, $5, $6, $7, $8, $9, $10, 'counted')
RETURNING ` + operationColumns

// Count counts the events that a change is about, and returns the operation that makes it once it is confirmed.
// identity says who may do that, such as access.Identity.Key. An error that is no fault of the database says which
// field makes no sense. It blocks for one statement per 5,000 events of the queue, or of the history.
func (o *Operations) Count(ctx context.Context, by audit.Actor, identity string, change Change) (op Operation, err error) {
	if identity == "" {
		return op, errors.New("count events: the identity is empty")
	}
	if err := by.Validate(); err != nil {
		return op, fmt.Errorf("count events: %w", err)
	}
	counted, last, err := o.count(ctx, change)
	if err != nil {
		return op, fmt.Errorf("count events: %w", err)
	}
	document, err := json.Marshal(documentOf(change))
	if err != nil {
		return op, fmt.Errorf("count events: %w", err)
	}
	op, err = o.one(ctx, o.pool, insertSQL, [16]byte(uuid.New()), ConfirmWithin, identity, by.Name, by.Source, by.Via,
		(*[16]byte)(change.Filter.Canvas), string(document), counted, int64(last))
	if err != nil {
		return op, fmt.Errorf("count events: %w", err)
	}
	return op, nil
}

// Size is Count without an operation: nothing is written.
func (o *Operations) Size(ctx context.Context, change Change) (int, error) {
	counted, _, err := o.count(ctx, change)
	if err != nil {
		return 0, fmt.Errorf("count events: %w", err)
	}
	return counted, nil
}

func (o *Operations) count(ctx context.Context, change Change) (counted int, last eventqueue.EventID, err error) {
	if err := change.Validate(o.queue.Limits()); err != nil {
		return 0, 0, &InvalidError{err}
	}
	walk, err := walkOf(o.store, o.queue, change, "")
	if err != nil {
		return 0, 0, err
	}
	if last, err = walk.last(ctx); err != nil {
		return 0, 0, err
	}
	if counted, err = countPages(ctx, walk.page, change.Filter, last, math.MaxInt); err == nil && counted == 0 {
		err = checkHistory(ctx, walk.page, change, last)
	}
	return counted, last, err
}

// countPages counts the events that a filter selects, until there are enough.
func countPages(ctx context.Context, page pageFunc, filter EventFilter, last eventqueue.EventID, enough int) (counted int, err error) {
	for after := eventqueue.EventID(0); after < last && counted < enough; {
		ids, next, err := page(ctx, filter, after, last, pageSize)
		if err != nil {
			return 0, err
		}
		if counted += len(ids); next == 0 {
			break
		}
		after = next
	}
	return counted, nil
}

// InvalidError is returned for a change that makes no sense.
type InvalidError struct{ err error }

func (e *InvalidError) Error() string { return e.err.Error() }
func (e *InvalidError) Unwrap() error { return e.err }

const confirmableSQL = `
SELECT ` + operationColumns + `
FROM bulk_operations o
WHERE o.id = $1 AND o.identity = $2
FOR UPDATE`

const expiredSQL = `SELECT expires_at <= clock_timestamp() FROM bulk_operations WHERE id = $1`

const startSQL = `
UPDATE bulk_operations o SET state = 'running', started_at = clock_timestamp()
WHERE o.id = $1
RETURNING ` + operationColumns

// Confirm starts an operation that the same identity has counted, and returns at once: Run, in whatever program, does the work. One that was
// confirmed before stays as it is. The error is ErrUnknownOperation, ErrCountExpired, or one of the database.
func (o *Operations) Confirm(ctx context.Context, by audit.Actor, identity string, id uuid.UUID) (op Operation, err error) {
	by.Operation = id
	confirm := func(tx pgsession.DB) (err error) {
		if op, err = o.one(ctx, tx, confirmableSQL, [16]byte(id), identity); err != nil || op.State != OperationCounted {
			return err
		}
		var expired bool
		if err := tx.QueryRow(ctx, expiredSQL, [16]byte(id)).Scan(&expired); err != nil {
			return err
		}
		if expired {
			return ErrCountExpired
		}
		if op, err = o.one(ctx, tx, startSQL, [16]byte(id)); err != nil {
			return err
		}
		return writeAudit(ctx, tx, by, "bulk_"+string(op.Change.Verb), op)
	}
	if err = o.pool.InTx(ctx, confirm); err != nil && sqlstate.MayHaveCommitted(err) {
		if again := o.pool.InTx(ctx, confirm); again != nil { // it finds it running if only the answer was lost
			err = errors.Join(err, again)
		} else {
			err = nil
		}
	}
	if err != nil {
		return Operation{}, fmt.Errorf("confirm the operation %s: %w", id, err)
	}
	o.wakeUp()
	return op, nil
}

// wakeUp has Run look for operations at once.
func (o *Operations) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// writeAudit writes a row about an operation as a whole.
func writeAudit(ctx context.Context, tx pgsession.DB, by audit.Actor, action string, op Operation) error {
	after, err := json.Marshal(struct {
		State   OperationState `json:"state"`
		Counted int            `json:"counted"`
		Changed int            `json:"changed"`
		Running int            `json:"running"`
		Busy    int            `json:"busy"`
		Refused int            `json:"refused"`
	}{op.State, op.Counted, op.Changed, op.Running, op.Busy, op.Refused})
	if err != nil {
		return err
	}
	return audit.Write(ctx, tx, by, audit.Change{Action: action, Canvas: op.Change.Filter.Canvas, Target: target(op), After: after})
}

// The lease stays: a piece may be under way, which whoever resumes the operation has to count.
const stopSQL = `
UPDATE bulk_operations o SET state = 'stopped', ended_at = clock_timestamp()
WHERE o.id = $1 AND o.state IN ('counted', 'running')
RETURNING ` + operationColumns

// Stop ends an operation: a piece that is under way is the last one, and what was done stays done. One that has ended stays as it is. The error is
// ErrUnknownOperation, or one of the database.
func (o *Operations) Stop(ctx context.Context, by audit.Actor, id uuid.UUID) (op Operation, err error) {
	op, _, err = o.switchTo(ctx, by, id, "bulk_stop", stopSQL)
	if err != nil {
		return Operation{}, fmt.Errorf("stop the operation %s: %w", id, err)
	}
	return op, nil
}

// switchTo gives an operation another state by sql, in the name of an actor. One whose state that does not change is
// returned as it is.
func (o *Operations) switchTo(ctx context.Context, by audit.Actor, id uuid.UUID, action, sql string) (op Operation, changed bool, err error) {
	by.Operation = id
	err = o.pool.InTx(ctx, func(tx pgsession.DB) (err error) {
		if op, err = o.one(ctx, tx, sql, [16]byte(id)); err != nil {
			return err
		}
		return writeAudit(ctx, tx, by, action, op)
	})
	if errors.Is(err, ErrUnknownOperation) {
		op, err = o.one(ctx, o.pool, getSQL, [16]byte(id))
		return op, false, err
	}
	return op, err == nil, err
}

const getSQL = `SELECT ` + operationColumns + ` FROM bulk_operations o WHERE o.id = $1`

// Get returns an operation as it is now. The error is ErrUnknownOperation, or one of the database. It blocks for one
// statement.
func (o *Operations) Get(ctx context.Context, id uuid.UUID) (Operation, error) {
	op, err := o.one(ctx, o.pool, getSQL, [16]byte(id))
	if err != nil {
		return op, fmt.Errorf("read the operation %s: %w", id, err)
	}
	return op, nil
}

const listSQL = `
SELECT ` + operationColumns + `
FROM bulk_operations o
WHERE o.state <> 'counted' AND ($1::uuid[] IS NULL OR o.canvas_id = ANY ($1))
ORDER BY o.counted_at DESC, o.id
LIMIT $2`

// List returns at most limit operations that were confirmed, the newest first, whose filters name one of the
// canvases; nil is all operations. It blocks for one statement.
func (o *Operations) List(ctx context.Context, canvases []eventqueue.CanvasID, limit int) ([]Operation, error) {
	var of [][16]byte
	if canvases != nil {
		of = [][16]byte{}
	}
	for _, canvas := range canvases {
		of = append(of, [16]byte(canvas))
	}
	rows, err := o.pool.Query(ctx, listSQL, of, limit)
	if err != nil {
		return nil, fmt.Errorf("list the operations: %w", err)
	}
	return pgx.CollectRows(rows, scanOperation)
}

// RetainOperationsFor is how long operations are retained after their end.
const RetainOperationsFor = 7 * 24 * time.Hour

const pruneSQL = `
DELETE FROM bulk_operations
WHERE id = ANY (ARRAY(
    SELECT id FROM bulk_operations
    WHERE counted_at < clock_timestamp() - $1::interval
      AND (state = 'counted' OR ended_at < clock_timestamp() - $1::interval)
    LIMIT $2))`

// Prune deletes at most limit operations that ended longer ago than olderThan, or were counted and never confirmed.
func (o *Operations) Prune(ctx context.Context, olderThan time.Duration, limit int) (deleted int, err error) {
	tag, err := o.pool.Exec(ctx, pruneSQL, olderThan, limit)
	if err != nil {
		return 0, fmt.Errorf("prune the bulk operations: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// one reads one operation; ErrUnknownOperation if there is none.
func (o *Operations) one(ctx context.Context, db pgsession.DB, sql string, args ...any) (Operation, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return Operation{}, err
	}
	op, err := pgx.CollectExactlyOneRow(rows, scanOperation)
	if errors.Is(err, pgx.ErrNoRows) {
		return op, ErrUnknownOperation
	}
	return op, err
}

func scanOperation(row pgx.CollectableRow) (op Operation, err error) {
	return scanWith(row)
}

// scanWith reads the columns of an operation, and those after them.
func scanWith(row pgx.CollectableRow, more ...any) (op Operation, err error) {
	var text string
	var started, ended *time.Time
	if err := row.Scan(append([]any{(*[16]byte)(&op.ID), &text, &op.By.Name, &op.By.Key, &op.By.Source, &op.By.Via, &op.Counted, &op.State, &op.CountedAt, &started, &ended,
		&op.ExpiresAt, &op.Changed, &op.Running, &op.Busy, &op.Refused}, more...)...); err != nil {
		return op, err
	}
	op.By.Operation = op.ID
	if started != nil {
		op.StartedAt = *started
	}
	if ended != nil {
		op.EndedAt = *ended
	}
	var d document
	if json.Unmarshal([]byte(text), &d) != nil {
		d = document{Verb: unreadable}
	}
	op.Change = d.change()
	return op, nil
}
