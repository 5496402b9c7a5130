package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// Attempt is a run of an event that failed, or that completed it and is kept in the history.
type Attempt struct {
	// Attempt is the number of the claim under which the event ran. Claims that were given
	// back, snoozed, or lost with their worker leave gaps.
	Attempt   int32
	StartedAt time.Time
	Duration  time.Duration
	// Worker is the number of the worker, 0 if it is not known.
	Worker eventqueue.WorkerNumber
	// Error is the beginning of the handler's error, of 8 KiB or less.
	Error string
	// Stack is the beginning of the handler's stack, of 8 KiB or less, if it panicked.
	Stack string
	// RunLog is what was logged with the context of the run, if the program attaches that; like the event's value, it may be secret.
	RunLog string
	// Completed: the run has completed the event.
	Completed bool
}

const attemptsSQL = `
SELECT attempt, started_at, duration, CASE WHEN worker BETWEEN 0 AND 2147483647 THEN worker ELSE 0 END, error, coalesce(stack, ''), coalesce(run_log, ''), false
FROM event_attempts
WHERE event_id = $1
UNION ALL
SELECT attempts, created_at - duration, duration, coalesce(worker, 0), '', '', coalesce(run_log, ''), true
FROM event_log
WHERE id = $1 AND status = 'COMPLETED' AND duration IS NOT NULL
ORDER BY 1`

// Attempts returns the newest failed attempts of an event, 20 or less, the oldest of them first, and then the run that
// has completed it, if the history keeps completed events. It finds them for as long as the event is queued or in
// event_log, and failed ones up to an hour longer.
func (r *Reader) Attempts(ctx context.Context, id eventqueue.EventID) ([]Attempt, error) {
	return listAttempts(ctx, r.pool, id)
}

func listAttempts(ctx context.Context, db eventqueue.DB, id eventqueue.EventID) ([]Attempt, error) {
	rows, err := db.Query(ctx, attemptsSQL, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Attempt])
}

// workersOf returns the workers of some attempts, as far as they are known.
func workersOf(ctx context.Context, db eventqueue.DB, attempts []Attempt) (map[eventqueue.WorkerNumber]Worker, error) {
	numbers := make([]eventqueue.WorkerNumber, len(attempts))
	for i := range attempts {
		numbers[i] = attempts[i].Worker
	}
	return workersByNumber(ctx, db, numbers)
}
