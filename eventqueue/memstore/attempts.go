package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// AttemptRow is a row of event_attempts. The zero Worker stands for NULL.
type AttemptRow struct {
	Event     eventqueue.EventID
	Attempt   int32
	Canvas    eventqueue.CanvasID
	StartedAt time.Time
	Duration  time.Duration
	Worker    eventqueue.WorkerNumber
	Error     string
}

func compareAttempts(a, b AttemptRow) int {
	return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Attempt, b.Attempt))
}

// record writes the failed attempt of a completion, if it has one.
func (tx *Tx) record(row *Row, completion *worker.Completion, now time.Time) {
	if !completion.Records() {
		return
	}
	took := completion.Duration.Truncate(time.Microsecond)
	tx.attempts = append(tx.attempts, AttemptRow{Event: row.ID, Attempt: row.Attempts, Canvas: row.Canvas, StartedAt: now.Add(-took),
		Duration: took, Worker: row.ClaimID.Worker(), Error: completion.LastError})
}

// applyAttempts writes the failed attempts into their table, and retains the newest of each event.
func (tx *Tx) applyAttempts() {
	db := tx.store.db
	for _, row := range tx.attempts {
		rows := slices.DeleteFunc(slices.Clone(db.attempts[row.Event]), func(old AttemptRow) bool { return old.Attempt == row.Attempt })
		older := rows[max(0, len(rows)-worker.MaxAttempts+1):]
		rows = append(slices.Clone(older), row)
		slices.SortFunc(rows, compareAttempts)
		db.attempts[row.Event] = rows
	}
}

// Attempts returns a copy of the committed rows of event_attempts, by event and attempt.
func (s *Store) Attempts() (rows []AttemptRow) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return s.db.attemptRows()
}

func (db *database) attemptRows() (rows []AttemptRow) {
	for _, some := range db.attempts {
		rows = append(rows, some...)
	}
	slices.SortFunc(rows, compareAttempts)
	return rows
}

// DeleteAttempts implements maintenance.AttemptStore.
func (s *Store) DeleteAttempts(ctx context.Context, after eventqueue.EventID, limit int) (deleted int, next eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpDeleteAttempts, func() {
		rows := slices.DeleteFunc(s.db.attemptRows(), func(row AttemptRow) bool { return row.Event <= after })
		if page := rows[:min(limit, len(rows))]; len(page) > 0 {
			if len(page) == limit {
				next = page[limit-1].Event
			}
			rows = page
		}
		for _, row := range rows {
			_, queued := s.db.events[row.Event]
			_, logged := s.db.log[row.Event]
			if !queued && !logged {
				deleted += len(s.db.attempts[row.Event])
				delete(s.db.attempts, row.Event)
			}
		}
	})
	if err != nil {
		return 0, 0, err
	}
	return deleted, next, nil
}
