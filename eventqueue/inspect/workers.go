package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/workerhandlers"
)

// WorkerState is whether a worker runs.
type WorkerState string

// The states of a worker.
const (
	WorkerLive    WorkerState = "live"    // it is connected to the database
	WorkerStopped WorkerState = "stopped" // it has stopped in order
	WorkerDead    WorkerState = "dead"    // it is not connected: it died, or has lost the database
)

// Worker is a worker of the queue: one that runs, or one that ended less than a day ago.
type Worker struct {
	// Number is in the number of each of the worker's claims (ClaimID.Worker), and so in its log.
	Number  eventqueue.WorkerNumber
	Host    string
	PID     int
	Version string // of the program's module
	// Handlers are those that it has for every canvas, and those that it has for one.
	Handlers eventqueue.HandlerSet
	// Unreadable means that Handlers lacks some, because the row has what no worker writes.
	Unreadable bool
	StartedAt  time.Time
	// StoppedAt is nil for a worker that runs or died.
	StoppedAt *time.Time
	State     WorkerState
	// Slots is how the worker is occupied, as of its last heartbeat with something in hand; the zero value
	// if that is unknown.
	Slots WorkerSlots
	// Breakers are its circuit breakers that are open, as of its last heartbeat.
	Breakers []workerhandlers.Breaker
	// AsOf is the database's clock.
	AsOf time.Time
}

// WorkerSlots is how a worker is occupied.
type WorkerSlots struct {
	// Of is how many events it may hold, and Busy how many it holds. Hung is of how many the handlers have not
	// returned though their time is over; those that were given up hold no slot.
	Of, Busy, Hung int
	// OldestSince is since when it has held the event that it has held for longest; nil if it holds none.
	OldestSince *time.Time
}

// Full reports whether the worker has no slot left, but for some that may be reserved for canvases that have few
// events running.
func (s WorkerSlots) Full() bool { return s.Of > 0 && s.Busy >= s.Of-s.Of/16 }

const workersSQL = `
WITH connected AS MATERIALIZED (` + pgsession.LiveWorkersSQL + `
)
SELECT ` + workerColumnsSQL + `
FROM event_workers w
WHERE $1::integer[] IS NULL OR w.number = ANY ($1)
ORDER BY w.started_at, w.number`

const workerColumnsSQL = `w.number, w.host, w.pid, w.version, w.handlers, w.started_at, w.stopped_at, CASE
        WHEN w.stopped_at IS NOT NULL THEN 'stopped'
        WHEN w.number IN (SELECT number FROM connected) THEN 'live'
        ELSE 'dead'
    END, coalesce(w.slots, 0), coalesce(w.busy, 0), coalesce(w.hung, 0), w.oldest_since, w.breakers, clock_timestamp()`

// Workers returns the workers that run, and those that ended less than about a day ago, the longest
// running first.
func (r *Reader) Workers(ctx context.Context) ([]Worker, error) { return listWorkers(ctx, r.pool, nil) }

// listWorkers returns the workers with some numbers; nil means all.
func listWorkers(ctx context.Context, db eventqueue.DB, numbers []eventqueue.WorkerNumber) ([]Worker, error) {
	rows, err := db.Query(ctx, workersSQL, numbers)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Worker, error) { return scanWorker(row) })
}

// scanWorker scans workerColumnsSQL, and further columns.
func scanWorker(row pgx.CollectableRow, more ...any) (w Worker, err error) {
	var handlers, breakers []byte
	err = row.Scan(append([]any{&w.Number, &w.Host, &w.PID, &w.Version, &handlers, &w.StartedAt, &w.StoppedAt, &w.State,
		&w.Slots.Of, &w.Slots.Busy, &w.Slots.Hung, &w.Slots.OldestSince, &breakers, &w.AsOf}, more...)...)
	var whole bool
	w.Handlers, whole = workerhandlers.Read(handlers)
	w.Unreadable = !whole
	w.Breakers = workerhandlers.ReadBreakers(breakers)
	return w, err
}

// addHolders sets the holders of locked events, with one statement if there are any.
func addHolders(ctx context.Context, db eventqueue.DB, events []QueuedEvent) error {
	var numbers []eventqueue.WorkerNumber
	for i := range events {
		if number := events[i].holder(); number != 0 {
			numbers = append(numbers, number)
		}
	}
	known, err := workersByNumber(ctx, db, numbers)
	for i := range events {
		if w, ok := known[events[i].holder()]; ok {
			events[i].Holder = &w
		}
	}
	return err
}

// workersByNumber returns those of some workers that are known.
func workersByNumber(ctx context.Context, db eventqueue.DB, numbers []eventqueue.WorkerNumber) (map[eventqueue.WorkerNumber]Worker, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	found, err := listWorkers(ctx, db, numbers)
	known := make(map[eventqueue.WorkerNumber]Worker, len(found))
	for _, w := range found {
		known[w.Number] = w
	}
	return known, err
}

// holder is the number of the worker whose lock is on the event, 0 if there is none.
func (e *QueuedEvent) holder() eventqueue.WorkerNumber {
	if e.LockedAt == nil {
		return 0
	}
	return e.ClaimID.Worker()
}
