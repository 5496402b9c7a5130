package bulk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/logkey"
)

// LeaseFor is for how long a program that does not report progress keeps an operation.
const LeaseFor = 30 * time.Second

const (
	// pieceTakes bounds a piece; it is below LeaseFor, so that nobody else begins with it meanwhile.
	pieceTakes = 20 * time.Second
	// slice is how long one operation runs before the next.
	slice = 5 * time.Second
	// checkEvery is how often Run asks for operations that other programs have started or left.
	checkEvery = 30 * time.Second
	// pageSize is how many events one statement reads.
	pageSize = 5000
	// maxFailures is how often an operation may fail without progress.
	maxFailures = 10
)

// errLost says that an operation is no longer this program's: it was stopped, or its lease has ended.
var errLost = errors.New("the operation was stopped, or another program has it")

// Run works on operations that are confirmed, until ctx ends; then it stops between two pieces and returns nil. While there are
// none it sends two statements a minute.
func (o *Operations) Run(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		worked, err := o.Work(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			o.log.Warn("could not work on the bulk operations; trying again", zap.Error(err), zap.Int(logkey.Count, failures))
		} else {
			failures = 0
		}
		if worked && err == nil {
			continue
		}
		timer := time.NewTimer(checkEvery/2 + rand.N(checkEvery)) // so that programs do not ask together
		select {
		case <-ctx.Done():
		case <-o.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// taken is an operation that this program works on.
type taken struct {
	Operation
	lease       uuid.UUID
	after, last eventqueue.EventID
	failures    int
	// age is how long ago its events were counted.
	age time.Duration
}

const takeSQL = `
UPDATE bulk_operations o SET lease = $1, leased_until = clock_timestamp() + $2::interval
FROM (
    SELECT id, lease IS NOT NULL AS interrupted
    FROM bulk_operations
    WHERE state = 'running' AND leased_until <= clock_timestamp()
    ORDER BY leased_until
    LIMIT 1
    FOR UPDATE SKIP LOCKED
) AS free
WHERE o.id = free.id
RETURNING ` + operationColumns + `, o.after_id, o.last_id, o.failures, clock_timestamp() - o.counted_at, free.interrupted`

// What an interrupted piece has changed is in the audit log, and nowhere else.
const recountSQL = `
SELECT count(DISTINCT event)
FROM audit_log a CROSS JOIN jsonb_array_elements(a.target -> 'events') AS event
WHERE a.operation_id = $1`

// take takes the operation that has waited longest; nil if there is none.
func (o *Operations) take(ctx context.Context) (t *taken, err error) {
	t = &taken{lease: uuid.New()}
	var interrupted bool
	rows, err := o.pool.Query(ctx, takeSQL, [16]byte(t.lease), LeaseFor)
	if err != nil {
		return nil, err
	}
	t.Operation, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Operation, error) {
		return scanWith(row, &t.after, &t.last, &t.failures, &t.age, &interrupted)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil || !interrupted {
		return t, err
	}
	return t, o.pool.QueryRow(ctx, recountSQL, [16]byte(t.ID)).Scan(&t.Changed)
}

// Work works on one operation for a few seconds, and reports whether there was one: for programs that do not Run.
func (o *Operations) Work(ctx context.Context) (worked bool, err error) {
	t, err := o.take(ctx)
	if err != nil || t == nil {
		return false, err
	}
	began := time.Now()
	w := walkOf(o.store.As(t.By), t.Change, t.By.Name)
	for ended := false; !ended; {
		if ctx.Err() != nil || time.Since(began) > slice {
			return true, o.release(ctx, t)
		}
		ended, err = o.page(ctx, t, w)
		if errors.Is(err, errLost) {
			return true, nil
		}
		if err != nil && ctx.Err() == nil {
			return true, errors.Join(err, o.failed(ctx, t))
		}
	}
	return true, o.end(ctx, t, Done)
}

// page works on the events of one page, in pieces, and reports whether it was the last.
func (o *Operations) page(ctx context.Context, t *taken, w walk) (last bool, err error) {
	ids, next, err := w.page(ctx, t.filter(), t.after, t.last, pageSize)
	if err != nil {
		return false, fmt.Errorf("bulk operation %s: %w", t.ID, err)
	}
	change, err := w.change(o.queue)
	if err != nil {
		return false, err
	}
	for piece := range slices.Chunk(ids, w.size) {
		if ctx.Err() != nil {
			return false, nil
		}
		if err := o.piece(ctx, t, piece, change); err != nil {
			return false, err
		}
	}
	if next == 0 {
		return true, nil
	}
	t.after = next
	return false, o.report(ctx, t)
}

// filter is the filter as it was when the events were counted: their ages have grown since.
func (t *taken) filter() control.EventFilter {
	f := t.Change.Filter
	if f.OlderThan > 0 {
		f.OlderThan += t.age
	}
	if f.NewerThan > 0 {
		f.NewerThan += t.age
	}
	return f
}

// piece changes events and reports it. When ctx ends it has a little time.
func (o *Operations) piece(ctx context.Context, t *taken, ids []eventqueue.EventID, change changeFunc) error {
	ctx, cancel := beyond(ctx)
	defer cancel()
	results, err := change(ctx, ids)
	if err != nil {
		return fmt.Errorf("bulk operation %s: %w", t.ID, err)
	}
	for _, result := range results {
		switch result {
		case control.ChangeDone:
			t.Changed++
		case control.ChangeRunning:
			t.Running++
		case control.ChangeBusy:
			t.Busy++
		case control.ChangeRefused:
			t.Refused++
		default: // it has ended, or was moved, since it was selected
		}
	}
	t.after = ids[len(ids)-1]
	return o.report(ctx, t)
}

// stopTakes is how long the current piece may go on when ctx ends.
const stopTakes = 3 * time.Second

// beyond returns a context that outlives ctx by stopTakes, so that the current piece can complete. What is cut off is counted
// by whoever goes on with the operation.
func beyond(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), pieceTakes)
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(stopTakes, cancel)
		context.AfterFunc(lasting, func() { timer.Stop() })
	})
	return lasting, func() { stop(); cancel() }
}

const reportSQL = `
UPDATE bulk_operations
SET after_id = $3, changed = $4, running = $5, busy = $6, refused = $7, failures = 0, leased_until = clock_timestamp() + $8::interval
WHERE id = $1 AND lease = $2 AND state = 'running'
RETURNING clock_timestamp() - counted_at`

// report writes the progress, and keeps the operation for longer. The error is errLost if somebody else has it.
func (o *Operations) report(ctx context.Context, t *taken) error {
	err := o.pool.QueryRow(ctx, reportSQL, [16]byte(t.ID), [16]byte(t.lease), int64(t.after), t.Changed, t.Running, t.Busy, t.Refused, LeaseFor).Scan(&t.age)
	if errors.Is(err, pgx.ErrNoRows) {
		return errLost
	}
	if err != nil {
		return fmt.Errorf("report the progress of the bulk operation %s: %w", t.ID, err)
	}
	t.failures = 0
	return nil
}

const releaseSQL = `UPDATE bulk_operations SET lease = NULL, leased_until = clock_timestamp() WHERE id = $1 AND lease = $2`

// release leaves an operation to whoever takes it next.
func (o *Operations) release(ctx context.Context, t *taken) error {
	ctx, cancel := beyond(ctx)
	defer cancel()
	_, err := o.pool.Exec(ctx, releaseSQL, [16]byte(t.ID), [16]byte(t.lease))
	return err
}

// The lease stays, so that whoever goes on counts again.
const failedSQL = `UPDATE bulk_operations SET failures = failures + 1, leased_until = clock_timestamp() + $3::interval WHERE id = $1 AND lease = $2`

// failed has an operation tried again later, or no more.
func (o *Operations) failed(ctx context.Context, t *taken) error {
	if t.failures+1 >= maxFailures {
		return o.end(ctx, t, Failed)
	}
	_, err := o.pool.Exec(ctx, failedSQL, [16]byte(t.ID), [16]byte(t.lease), min(time.Second<<t.failures, time.Minute))
	return err
}

const endSQL = `
UPDATE bulk_operations o SET state = $3, ended_at = clock_timestamp(), lease = NULL, changed = $4, running = $5, busy = $6, refused = $7
WHERE o.id = $1 AND o.lease = $2 AND o.state = 'running'
RETURNING ` + operationColumns

// end writes that an operation has ended, with its row in the audit log.
func (o *Operations) end(ctx context.Context, t *taken, state State) error {
	ctx, cancel := beyond(ctx)
	defer cancel()
	err := o.pool.InTx(ctx, func(tx pgsession.DB) error {
		op, err := o.one(ctx, tx, endSQL, [16]byte(t.ID), [16]byte(t.lease), string(state), t.Changed, t.Running, t.Busy, t.Refused)
		if errors.Is(err, ErrUnknown) { // it was stopped
			return nil
		}
		if err != nil {
			return err
		}
		return writeAudit(ctx, tx, t.By, "bulk_end", op)
	})
	if err != nil {
		return fmt.Errorf("end the bulk operation %s: %w", t.ID, err)
	}
	return nil
}

// changeFunc changes events, and has the results in the words of a control.Changer.
type changeFunc func(ctx context.Context, ids []eventqueue.EventID) ([]control.ChangeResult, error)

// walk is how the events of a change are found and changed.
type walk struct {
	last func(ctx context.Context) (eventqueue.EventID, error)
	page func(ctx context.Context, filter control.EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error)
	// size is how many events a piece has.
	size   int
	change func(queue *eventqueue.Queue) (changeFunc, error)
}

func walkOf(store *pgstore.Store, c Change, actor string) walk {
	switch c.Verb {
	case Retry:
		return walk{store.LastLogged, store.SelectLogged, control.MaxRetryEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return retryFunc(store, queue, c) }}
	case Run:
		return walk{store.LastQueued, store.Select, control.MaxRequeueEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return runFunc(store, queue) }}
	default:
		return walk{store.LastQueued, store.Select, control.MaxChangeEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return changerFunc(store, queue, c, actor) }}
	}
}

func retryFunc(store *pgstore.Store, queue *eventqueue.Queue, c Change) (changeFunc, error) {
	retrier, err := control.NewRetrier(store, queue)
	return func(ctx context.Context, ids []eventqueue.EventID) ([]control.ChangeResult, error) {
		var retried []control.Retried
		var err error
		if c.edits() {
			retried, err = retrier.RetryEdited(ctx, c.Edit, ids...)
		} else {
			retried, err = retrier.Retry(ctx, ids...)
		}
		return resultsOf(retried, func(r control.Retried) (control.ChangeResult, bool) {
			return control.ChangeResult(r.Result), r.Result == control.RetryMoved
		}), err
	}, err
}

func runFunc(store *pgstore.Store, queue *eventqueue.Queue) (changeFunc, error) {
	requeuer, err := control.NewRequeuer(store, queue, 0)
	return func(ctx context.Context, ids []eventqueue.EventID) ([]control.ChangeResult, error) {
		requeued, err := requeuer.Requeue(ctx, ids...)
		return resultsOf(requeued, func(r control.Requeued) (control.ChangeResult, bool) {
			return control.ChangeResult(r.Result), r.Result == control.RequeueDone
		}), err
	}, err
}

func changerFunc(store *pgstore.Store, queue *eventqueue.Queue, c Change, actor string) (changeFunc, error) {
	changer, err := control.NewChanger(store, queue)
	return func(ctx context.Context, ids []eventqueue.EventID) (results []control.ChangeResult, err error) {
		var changed []control.Changed
		switch c.Verb {
		case Cancel:
			changed, err = changer.Cancel(ctx, control.Cancellation{Reason: c.Reason, Actor: actor}, ids...)
		case Delete:
			changed, err = changer.Delete(ctx, ids...)
		default:
			changed, err = changer.Edit(ctx, c.Edit, ids...)
		}
		return resultsOf(changed, func(r control.Changed) (control.ChangeResult, bool) { return r.Result, r.Result == control.ChangeDone }), err
	}, err
}

// resultsOf returns the results of a change; done says of each whether it was made.
func resultsOf[R any](results []R, done func(R) (control.ChangeResult, bool)) []control.ChangeResult {
	words := make([]control.ChangeResult, len(results))
	for i, r := range results {
		word, is := done(r)
		if words[i] = word; is {
			words[i] = control.ChangeDone
		}
	}
	return words
}
