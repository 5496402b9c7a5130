package operate

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
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/logkey"
)

// LeaseFor is for how long a program that does not report progress keeps an operation.
const LeaseFor = 30 * time.Second

const (
	// pieceTakes bounds a piece; it is below LeaseFor, so that no other program takes it over meanwhile.
	pieceTakes = 20 * time.Second
	// slice is how long one operation runs before the next.
	slice = 5 * time.Second
	// checkEvery is how often Run asks for operations that other programs have started or left.
	checkEvery = 30 * time.Second
	// pageSize is how many events one statement reads.
	pageSize = 5000
	// maxFailures is how often an operation may fail without progress.
	maxFailures = 10
	// abandonedAfter is how long an operation may wait for a program: when one starts weeks after
	// eventctl was killed, the operation is unlikely to be wanted any more.
	abandonedAfter = 24 * time.Hour
)

// errLost says that an operation is no longer this program's: it was stopped, or its lease has ended.
var errLost = errors.New("the operation was stopped, or another program has it")

// Run works on operations that are confirmed, until ctx ends; then it stops between two pieces and returns nil. While there are
// none it sends four statements a minute.
func (o *Operations) Run(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		worked, wait, err := o.work(ctx, nil, nil)
		if err != nil && ctx.Err() == nil {
			failures++
			o.log.Warn("could not work on the bulk operations; trying again", zap.Error(err), zap.Int(logkey.Count, failures))
		} else {
			failures = 0
		}
		if worked && err == nil {
			continue
		}
		_ = o.sleep(ctx, min(wait, checkEvery/2+rand.N(checkEvery))) // so that programs do not ask together
	}
	return nil
}

// sleep waits, but not while there is something new. It returns the error of ctx.
func (o *Operations) sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-o.wake:
	case <-timer.C:
	}
	return nil
}

// taken is an operation that this program works on.
type taken struct {
	Operation
	lease       uuid.UUID
	after, last eventqueue.EventID
	failures    int
	// idle is for how long no program has worked on it.
	idle time.Duration
	// age is how long ago its events were counted.
	age time.Duration
	// pacedUntil is when the next event of a replay may be due, the zero time before the first, and ahead how
	// far that is from now.
	pacedUntil time.Time
	ahead      time.Duration
	// refused is called with each event that the database refuses to write.
	refused func(Changed)
}

// boundedSQL is a time that can be subtracted from another, whatever SQL has written. NULL stays NULL.
func boundedSQL(at string) string {
	return `(CASE WHEN ` + at + ` IS NOT NULL THEN least(greatest(` + at + `, '2000-01-01 00:00Z'), '2200-01-01 00:00Z') END)`
}

// idleSQL is for how long no program has worked on an operation.
var idleSQL = `clock_timestamp() - ` + boundedSQL("greatest(leased_until, started_at)")

var takeSQL = `
UPDATE bulk_operations o SET lease = $1, leased_until = clock_timestamp() + $2::interval
FROM (
    SELECT id, lease IS NOT NULL AS interrupted, ` + idleSQL + ` AS idle
    FROM bulk_operations
    WHERE state = 'running' AND leased_until <= clock_timestamp() AND ($3::uuid IS NULL OR id = $3)
    ORDER BY leased_until
    LIMIT 1
    FOR UPDATE SKIP LOCKED
) AS free
WHERE o.id = free.id
RETURNING ` + operationColumns + `, o.after_id, o.last_id, o.failures, clock_timestamp() - ` + boundedSQL("o.counted_at") + `, o.paced_until, free.interrupted, free.idle`

// How long it is until an operation is free again.
var freeInSQL = `
SELECT coalesce(` + boundedSQL("min(leased_until)") + ` - clock_timestamp(), interval '1 h') FROM bulk_operations WHERE state = 'running' AND ($1::uuid IS NULL OR id = $1)`

// What an interrupted piece has changed is in the audit log, and nowhere else. Runs that were asked to end are not changed yet.
const recountSQL = `
SELECT count(DISTINCT event)
FROM audit_log a CROSS JOIN jsonb_array_elements(CASE jsonb_typeof(a.target -> 'events') WHEN 'array' THEN a.target -> 'events' END) AS event
WHERE a.operation_id = $1 AND a.action <> '` + audit.CancelRun + `'`

// take takes the operation that has waited longest, or only the one that is named; nil if there is none.
func (o *Operations) take(ctx context.Context, only *uuid.UUID) (t *taken, err error) {
	t = &taken{lease: uuid.New(), refused: func(Changed) {}}
	var interrupted bool
	var paced *time.Time
	rows, err := o.pool.Query(ctx, takeSQL, [16]byte(t.lease), LeaseFor, (*[16]byte)(only))
	if err != nil {
		return nil, err
	}
	t.Operation, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Operation, error) {
		return scanWith(row, &t.after, &t.last, &t.failures, &t.age, &paced, &interrupted, &t.idle)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if paced != nil {
		t.pacedUntil = *paced
	}
	if err != nil || !interrupted {
		return t, err
	}
	return t, o.pool.QueryRow(ctx, recountSQL, [16]byte(t.ID)).Scan(&t.Changed)
}

// work works for a few seconds on the operation that has waited longest, or only on the one that is named, and reports whether
// there was one; if not, wait is how long there is nothing to do. refused is called with each event that the database refuses to write.
func (o *Operations) work(ctx context.Context, only *uuid.UUID, refused func(Changed)) (worked bool, wait time.Duration, err error) {
	t, err := o.take(ctx, only)
	if err != nil {
		return false, checkEvery, err
	}
	if t == nil {
		err := o.pool.QueryRow(ctx, freeInSQL, (*[16]byte)(only)).Scan(&wait)
		return false, max(0, wait), err
	}
	if refused != nil {
		t.refused = refused
	}
	if only == nil && t.idle > abandonedAfter {
		o.log.Warn("stopped a bulk operation that no program has worked on for a day; resume it if it is still wanted",
			zap.Stringer("operation_id", t.ID), zap.String("actor", t.By.Name))
		return true, 0, o.end(ctx, t, OperationStopped)
	}
	return true, 0, o.workOn(ctx, t)
}

func (o *Operations) workOn(ctx context.Context, t *taken) error {
	began := time.Now()
	w, err := walkOf(o.store.Operating(t.By), o.queue, t.Change, t.By.Name)
	if err != nil {
		return errors.Join(err, o.failed(ctx, t))
	}
	w.size = max(1, w.size>>t.failures) // a piece that took too long is tried with half of its events, and each that is done doubles the next slice's
	for ended := false; !ended; {
		if ctx.Err() != nil || time.Since(began) > slice || t.ahead > replayAhead {
			return o.release(ctx, t, false)
		}
		ended, err = o.page(ctx, t, w)
		switch {
		case errors.Is(err, errLost):
			return nil
		case err != nil && ctx.Err() != nil:
			return o.release(ctx, t, true)
		case err != nil:
			return errors.Join(err, o.failed(ctx, t))
		}
	}
	return o.end(ctx, t, OperationDone)
}

// page works on the events of one page, in pieces, and reports whether it was the last.
func (o *Operations) page(ctx context.Context, t *taken, w walk) (last bool, err error) {
	ids, next, err := w.page(ctx, t.filter(), t.after, t.last, pageSize)
	if err != nil {
		return false, fmt.Errorf("bulk operation %s: %w", t.ID, err)
	}
	for piece := range slices.Chunk(ids, w.size) {
		if ctx.Err() != nil {
			return false, nil
		}
		if err := o.piece(ctx, t, piece, w.change); err != nil {
			return false, err
		}
		if t.ahead > replayAhead {
			return false, nil
		}
	}
	if next == 0 {
		return true, nil
	}
	t.after = next
	return false, o.report(ctx, t)
}

// filter is the filter as it was when the events were counted: their ages have grown since.
func (t *taken) filter() EventFilter {
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
	if t.Change.Verb == VerbReplay {
		return o.replay(ctx, t, o.store.Operating(t.By), ids)
	}
	ctx, cancel := beyond(ctx)
	defer cancel()
	results, err := change(ctx, ids...)
	if err != nil {
		return fmt.Errorf("bulk operation %s: %w", t.ID, err)
	}
	for _, r := range results {
		switch {
		case r.Done():
			t.Changed++
		case r.Result == ChangeRunning, r.Result == ChangeEnding:
			t.Running++
		case r.Result == ChangeBusy:
			t.Busy++
		case r.Result == ChangeRefused:
			t.Refused++
			t.refused(r)
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
SET after_id = $3, changed = $4, running = $5, busy = $6, refused = $7, failures = greatest(failures - 1, 0), leased_until = clock_timestamp() + $8::interval
WHERE id = $1 AND lease = $2 AND state = 'running'
RETURNING clock_timestamp() - counted_at`

// report writes the progress, and extends the lease. The error is errLost if another program has it.
func (o *Operations) report(ctx context.Context, t *taken) error {
	err := o.pool.QueryRow(ctx, reportSQL, [16]byte(t.ID), [16]byte(t.lease), int64(t.after), t.Changed, t.Running, t.Busy, t.Refused, LeaseFor).Scan(&t.age)
	if errors.Is(err, pgx.ErrNoRows) {
		return errLost
	}
	if err != nil {
		return fmt.Errorf("report the progress of the bulk operation %s: %w", t.ID, err)
	}
	t.failures = max(t.failures-1, 0)
	return nil
}

const releaseSQL = `
UPDATE bulk_operations SET lease = CASE WHEN $4 THEN lease END, leased_until = clock_timestamp() + $3::interval WHERE id = $1 AND lease = $2`

// release leaves an operation to whoever takes it next; a replay when what it has emitted comes to its end. After a
// piece that was cut off the lease stays, so that whoever goes on counts again.
func (o *Operations) release(ctx context.Context, t *taken, cut bool) error {
	ctx, cancel := beyond(ctx)
	defer cancel()
	_, err := o.pool.Exec(ctx, releaseSQL, [16]byte(t.ID), [16]byte(t.lease), max(0, t.ahead-replayAhead), cut)
	return err
}

// The lease stays, so that whoever goes on counts again.
const failedSQL = `UPDATE bulk_operations SET failures = failures + 1, leased_until = clock_timestamp() + $3::interval WHERE id = $1 AND lease = $2`

// failed has an operation tried again later, or no more.
func (o *Operations) failed(ctx context.Context, t *taken) error {
	if t.failures+1 >= maxFailures {
		return o.end(ctx, t, OperationFailed)
	}
	_, err := o.pool.Exec(ctx, failedSQL, [16]byte(t.ID), [16]byte(t.lease), min(time.Second<<t.failures, time.Minute))
	return err
}

const endSQL = `
UPDATE bulk_operations o SET state = $3, ended_at = clock_timestamp(), lease = CASE WHEN $3 = 'failed' THEN lease END, changed = $4, running = $5, busy = $6, refused = $7
WHERE o.id = $1 AND o.lease = $2 AND o.state = 'running'
RETURNING ` + operationColumns

// end writes that an operation has ended, with its row in the audit log.
func (o *Operations) end(ctx context.Context, t *taken, state OperationState) error {
	ctx, cancel := beyond(ctx)
	defer cancel()
	err := o.pool.InTx(ctx, func(tx pgsession.DB) error {
		op, err := o.one(ctx, tx, endSQL, [16]byte(t.ID), [16]byte(t.lease), string(state), t.Changed, t.Running, t.Busy, t.Refused)
		if errors.Is(err, ErrUnknownOperation) { // it was stopped
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
