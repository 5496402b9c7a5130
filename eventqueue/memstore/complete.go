package memstore

import (
	"context"
	"math"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/worker"
)

// Complete implements worker.Store.
func (s *Store) Complete(ctx context.Context, in eventqueue.DB, completions []worker.Completion, retain bool) (worker.WriteResult, error) {
	var written worker.WriteResult
	err := s.inTx(ctx, in, OpComplete, func(tx *Tx) error {
		for i := range completions {
			if completions[i].Records() || fails(completions[i].Label) {
				if err := checkTexts(completions[i].LastError); err != nil {
					return err
				}
			}
		}
		if err := s.refused(OpComplete, tx.completable(completions)); err != nil {
			return err
		}
		// As in Postgres, the events that leave the table come before those that stay.
		now := s.db.now()
		for _, leave := range []bool{true, false} {
			tx.completeAll(completions, leave, retain, now, &written)
		}
		if in == nil {
			written.Advanced = tx.advanceAfter(completions)
		}
		return nil
	})
	if err != nil {
		return worker.WriteResult{}, err
	}
	return written, nil
}

// completable returns the events whose completions can be written.
func (tx *Tx) completable(completions []worker.Completion) (ids []eventqueue.EventID) {
	for i := range completions {
		c := &completions[i]
		if row, ok := tx.row(c.Event); ok && holds(&row, c.Claim) && tx.mayWrite(c.Event) {
			ids = append(ids, c.Event)
		}
	}
	return ids
}

// completeAll is one statement: it writes the completions of events that leave the
// table, or of those that stay, and returns the result for each.
func (tx *Tx) completeAll(completions []worker.Completion, leave, retain bool, now time.Time, written *worker.WriteResult) {
	done := map[worker.Claim]bool{} // a claim that occurs twice is written once
	for i := range completions {
		completion := &completions[i]
		if leaves(completion.Label) != leave {
			continue
		}
		row, ok := tx.row(completion.Event)
		switch {
		case done[completion.Claim]:
			written.Done = append(written.Done, completion.Event)
		case !ok || !holds(&row, completion.Claim):
			written.Lost = append(written.Lost, completion.Event)
		case tx.mayWrite(completion.Event):
			tx.complete(&row, completion, retain, now)
			done[completion.Claim] = true
			written.Done = append(written.Done, completion.Event)
		}
	}
}

// leaves reports whether a completion deletes the row.
func leaves(label machine.Label) bool {
	switch label {
	case machine.ExecutesToCompletion, machine.RetryTooMany, machine.FailedForGood:
		return true
	case machine.RetryAllowed, machine.Snoozed, machine.Released, machine.OverLimit:
		return false
	default:
		panic("memstore: an event cannot end with " + string(label))
	}
}

// fails reports whether a completion writes the event's last error.
func fails(label machine.Label) bool {
	return label == machine.RetryTooMany || label == machine.FailedForGood
}

// complete writes one completion whose claim is still valid.
func (tx *Tx) complete(row *Row, completion *worker.Completion, retain bool, now time.Time) {
	tx.record(row, completion, now)
	if leaves(completion.Label) {
		tx.log(row, completion, retain, now)
		tx.stamp(row, now)
		tx.write(row.ID, nil)
		return
	}
	row.LockedAt, row.Begun = time.Time{}, false
	if completion.Label != machine.Released {
		row.LostRun = false
	}
	if completion.Label == machine.RetryAllowed || completion.Label == machine.Snoozed { // it has run, and its worker lives
		row.Company = 0
	}
	if completion.Company > 0 {
		row.Company = int16(min(completion.Company, worker.AnyCompany)) //nolint:gosec // bounded
	}
	switch completion.Label {
	case machine.RetryAllowed:
		row.Retries++
		row.Snoozes = 0
	case machine.Snoozed:
		row.Snoozes = min(row.Snoozes, math.MaxInt16-1) + 1
	default:
	}
	if completion.Label != machine.Released {
		// If the wait is longer than a notifier can delay, the notification is pending.
		delay := completion.Delay.Truncate(time.Microsecond) + time.Microsecond // never early (I6)
		row.DelayUntil, row.NotifiedAt = now.Add(delay), time.Time{}
		if delay <= eventqueue.MaxRequeue {
			row.NotifiedAt = row.DelayUntil
		}
	}
	if completion.Label == machine.OverLimit {
		if row.LimitedAttempt == -limitedAttempt(row.Attempts) { // changed since it was asked
			row.DelayUntil, row.NotifiedAt = now, time.Time{}
		}
		row.LimitedAttempt = limitedAttempt(row.Attempts)
	}
	tx.write(row.ID, row)
}

// log writes the history of an event that leaves the table.
func (tx *Tx) log(row *Row, completion *worker.Completion, retain bool, now time.Time) {
	entry := LogRow{
		ID: row.ID, Canvas: row.Canvas, Module: row.Module, Name: row.Name, Modifier: row.Modifier, Value: row.Value,
		Status: maintenance.LogFailed, Retries: row.Retries, Attempts: row.Attempts, LastError: completion.LastError,
		EnqueuedAt: row.EnqueuedAt, CreatedAt: now, OrderingKey: row.OrderingKey, Attributes: row.Attributes, Parent: row.Parent,
	}
	if completion.Label == machine.ExecutesToCompletion {
		if !retain {
			return
		}
		entry.Status, entry.LastError = maintenance.LogCompleted, ""
	}
	if completion.Label == machine.FailedForGood {
		entry.Reason = string(machine.FailedForGood)
	}
	tx.logged[row.ID] = entry
}
