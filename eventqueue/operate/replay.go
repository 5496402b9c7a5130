package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/attributes"
	"eventsv2/internal/logkey"
	"eventsv2/internal/sqlstate"
)

const (
	// maxReplayed is how many events one transaction of a replay emits, and replayedFor how much of its rate, at most: so many
	// are in the queue ahead of their time, and come after a Stop.
	maxReplayed = 1000
	replayedFor = 5 * time.Second
	// replayAhead is how much is left of them when the next are emitted.
	replayAhead = time.Second
)

// errNoHistory is why nothing can be replayed where nothing is retained.
var errNoHistory = errors.New("the history has no completed event: workers retain completed events only with RETAIN_HISTORY=true; " +
	"set it for the workers, and what completes from then on can be replayed; or choose failed or cancelled events by their state")

// OriginalOf returns the event that one with these attributes repeats; 0 if it repeats none.
func OriginalOf(of map[string]string) eventqueue.EventID {
	return eventqueue.EventID(attributes.OriginalOf(of))
}

// endedState is the state of the events that a replay repeats.
func endedState(f EventFilter) EventState {
	return cmp.Or(f.State, StateCompleted)
}

// selectEnded is SelectLogged with the state that a replay selects where none is given.
func selectEnded(store Store) pageFunc {
	return func(ctx context.Context, filter EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error) {
		filter.State = endedState(filter)
		return store.SelectLogged(ctx, filter, after, last, limit)
	}
}

// checkHistory returns an error if a replay finds nothing because no completed event of its canvas is retained.
func checkHistory(ctx context.Context, page pageFunc, change Change, last eventqueue.EventID) error {
	if change.Verb != VerbReplay || endedState(change.Filter) != StateCompleted {
		return nil
	}
	found, err := countPages(ctx, page, EventFilter{Canvas: change.Filter.Canvas}, last, 1)
	if err == nil && found == 0 {
		err = &InvalidError{errNoHistory}
	}
	return err
}

// rate is how many events a replay has become due in a second.
func (c Change) rate() float64 { return cmp.Or(c.Rate, DefaultReplayRate) }

// Takes is how long it takes at least until the last of n events is due; 0 for all but a replay.
func (c Change) Takes(n int) time.Duration {
	if c.Verb != VerbReplay {
		return 0
	}
	return time.Duration(float64(max(0, n-1)) / c.rate() * float64(time.Second))
}

// replayPiece is how many events of a replay one transaction emits.
func replayPiece(c Change) int {
	return max(1, min(maxReplayed, int(c.rate()*replayedFor.Seconds())))
}

const reportReplayedSQL = `
UPDATE bulk_operations
SET after_id = $3, changed = changed + $4, paced_until = coalesce($5, paced_until), failures = greatest(failures - 1, 0), leased_until = clock_timestamp() + $6::interval
WHERE id = $1 AND lease = $2 AND state = 'running'
RETURNING changed`

// replay emits a piece. The progress is written by the transactions that emit, and only by who has the lease: so an event
// is emitted again once by an operation, whatever dies, and whoever goes on.
func (o *Operations) replay(ctx context.Context, t *taken, store Store, ids []eventqueue.EventID) error {
	ctx, cancel := beyond(ctx)
	defer cancel()
	every := time.Duration(float64(time.Second) / t.Change.rate())
	var emitted []Replayed
	refused, err := store.Replay(ctx, ids, string(endedState(t.Change.Filter)), t.pacedUntil, every, func(tx pgsession.DB, some Replayed) error {
		var until *time.Time
		if !some.Until.IsZero() {
			until = &some.Until
		}
		err := tx.QueryRow(ctx, reportReplayedSQL, [16]byte(t.ID), [16]byte(t.lease), int64(some.Through), len(some.IDs), until, LeaseFor).Scan(&t.Changed)
		if errors.Is(err, pgx.ErrNoRows) {
			return errLost
		}
		emitted = append(emitted, some)
		return err
	})
	for _, some := range emitted {
		if some.Until.IsZero() {
			continue
		}
		t.pacedUntil, t.ahead = some.Until, some.Ahead
		minutes.Of(o.queue).CountEmits(slices.Values(some.Scopes))
		if err := o.queue.NotifyPending(ctx, some.IDs); err != nil { // they are pending: a failure only costs time
			o.log.Warn("could not publish notifications for replayed events; the relay will", zap.Int(logkey.Count, len(some.IDs)), zap.Error(err))
		}
	}
	if err != nil {
		return fmt.Errorf("bulk operation %s: %w", t.ID, err)
	}
	t.Refused += len(refused)
	for _, r := range refused {
		t.refused(Changed{ID: r.Item, Result: ChangeRefused, Err: r.Err})
	}
	t.after = ids[len(ids)-1]
	return o.report(ctx, t)
}

var resumeSQL = `
UPDATE bulk_operations o SET state = 'running', ended_at = NULL, failures = 0, leased_until = clock_timestamp()
WHERE o.id = $1 AND o.started_at IS NOT NULL
  AND (o.state IN ('stopped', 'failed') OR o.state = 'running' AND ` + idleSQL + fmt.Sprintf(` > interval '%d seconds')`, abandonedAfter/time.Second) + `
RETURNING ` + operationColumns

// Resume has an operation that was stopped, has failed, or was left by all programs for a day, go on from where it ended, and returns at
// once. One that runs or is done stays as it is, as does one that was never confirmed. The error is ErrUnknownOperation, or one of the database.
func (o *Operations) Resume(ctx context.Context, by audit.Actor, id uuid.UUID) (op Operation, err error) {
	op, changed, err := o.switchTo(ctx, by, id, "bulk_resume", resumeSQL)
	if err != nil {
		return Operation{}, fmt.Errorf("resume the operation %s: %w", id, err)
	}
	if changed {
		o.wakeUp()
	}
	return op, nil
}

// Await works on one operation until it has ended, together with the programs that Run, and returns it as it is then. progress is called
// now and then with how far it is, and refused with each event that the database refuses to write; those that other
// programs come upon are only counted. When ctx ends, Await stops between two pieces, and returns the error of ctx. A
// statement that the database refuses is an error at once; the operation can be awaited again.
func (o *Operations) Await(ctx context.Context, id uuid.UUID, progress func(op Operation), refused func(Changed)) (Operation, error) {
	for {
		worked, wait, err := o.work(ctx, &id, refused)
		if ctx.Err() != nil {
			return Operation{}, ctx.Err()
		}
		if sqlstate.Refused(err) {
			return Operation{}, err
		}
		if err != nil {
			o.log.Warn("could not work on the bulk operation; trying again", zap.Error(err))
		}
		op, err := o.Get(ctx, id)
		switch {
		case errors.Is(err, ErrUnknownOperation) || sqlstate.Refused(err) || err == nil && op.State != OperationRunning:
			return op, err
		case err != nil: // as during a failover
			if err := o.sleep(ctx, awaitEvery); err != nil {
				return op, err
			}
			continue
		}
		progress(op)
		if worked {
			continue
		}
		if err := o.sleep(ctx, min(wait, awaitEvery)); err != nil {
			return op, err
		}
	}
}

// awaitEvery is how often Await checks an operation on which another program works.
const awaitEvery = 5 * time.Second
