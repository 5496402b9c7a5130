package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/workerhandlers"
)

// What shows that a worker lives is an advisory lock, which ends with the connection that holds
// it. Only what operators are shown depends on it. A worker that connects again finds its row,
// unless it was away for so long that the row was deleted; so it inserts it each time, which
// writes nothing if it is as it was.
const (
	showWorkerSQL = `SELECT pg_try_advisory_lock_shared(` + pgsession.WorkerLockClass + `, $1)`

	registerWorkerSQL = `
INSERT INTO event_workers AS w (number, host, pid, version, handlers, slots) VALUES ($1, $2, $3, $4, $5, nullif($6, 0))
ON CONFLICT (number) DO UPDATE SET missed_at = NULL WHERE w.missed_at IS NOT NULL`

	stopWorkerSQL = `UPDATE event_workers SET stopped_at = clock_timestamp(), busy = NULL, hung = NULL, oldest_since = NULL, breakers = NULL WHERE number = $1`

	reportSlotsSQL = `
UPDATE event_workers SET slots = $2, busy = $3, hung = $4, oldest_since = clock_timestamp() - $5::interval, breakers = $6::jsonb WHERE number = $1 AND stopped_at IS NULL`
)

// registerWorker shows on a new connection that a worker lives.
func registerWorker(ctx context.Context, conn pgsession.DB, self worker.Registration) error {
	batch := &pgx.Batch{}
	batch.Queue(showWorkerSQL, self.Number)
	batch.Queue(registerWorkerSQL, self.Number, self.Host, self.PID, self.Version, workerhandlers.List(self.Handlers), self.Slots)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("register the worker: %w", err)
	}
	return nil
}

// ReportSlots records how a worker is occupied and which of its circuit breakers are open, for operators.
func (s *Store) ReportSlots(ctx context.Context, self eventqueue.WorkerNumber, now worker.Slots, open []worker.OpenBreaker) error {
	var oldest *time.Duration
	if !now.OldestSince.IsZero() {
		oldest = new(time.Since(now.OldestSince))
	}
	var breakers any // NULL
	if len(open) > 0 {
		list := make([]workerhandlers.Breaker, len(open))
		for i, b := range open {
			list[i] = workerhandlers.Breaker{Handler: workerhandlers.Of(b.Handler), Since: b.Since.UTC(), Error: b.Error}
		}
		breakers = list
	}
	_, err := s.pool.Exec(ctx, reportSlotsSQL, self, now.Of, now.Busy, now.Hung, oldest, breakers)
	return err
}

// handlersKnownFor is how long the last worker of its handlers stays in the table: while workers are
// scaled to zero, events_v2_runnable knows from it for which events to start one.
const handlersKnownFor = 30 * 24 * time.Hour

// A worker that is connected again is left, whatever its row says, and so is the last one of those with
// the same handlers, for longer. There are few rows, and none is locked for longer than a moment.
const deleteWorkersSQL = `
WITH connected AS MATERIALIZED (` + pgsession.LiveWorkersSQL + `
), missed AS (
    UPDATE event_workers SET missed_at = clock_timestamp()
    WHERE stopped_at IS NULL AND missed_at IS NULL AND number NOT IN (SELECT number FROM connected)
), gone AS (
    DELETE FROM event_workers w
    WHERE least(stopped_at, missed_at) <= clock_timestamp() - $1::interval AND number NOT IN (SELECT number FROM connected)
      AND (least(stopped_at, missed_at) <= clock_timestamp() - greatest($1::interval, $2::interval) OR EXISTS (
          SELECT FROM event_workers newer WHERE newer.handlers = w.handlers AND (newer.started_at, newer.number) > (w.started_at, w.number)))
    RETURNING number
)
SELECT count(*) FROM gone`

// DeleteWorkers implements maintenance.WorkerStore, in one statement.
func (s *Store) DeleteWorkers(ctx context.Context, olderThan time.Duration) (deleted int, err error) {
	err = s.pool.QueryRow(ctx, deleteWorkersSQL, olderThan, handlersKnownFor).Scan(&deleted)
	return deleted, err
}
