package memstore

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// Finish implements eventqueue.ClaimStore.
func (s *Store) Finish(ctx context.Context, in eventqueue.DB, ends []eventqueue.End, keep bool) (eventqueue.Written, error) {
	var written eventqueue.Written
	err := s.inTx(ctx, in, OpFinish, func(tx *Tx) error {
		for i := range ends {
			if fails(ends[i].Label) {
				if err := checkTexts(ends[i].LastError); err != nil {
					return err
				}
			}
		}
		// As in Postgres, all that leave the table come before all that stay.
		now := s.db.now()
		had := tx.turnsOf(ends)
		for _, leave := range []bool{true, false} {
			tx.finishAll(ends, leave, keep, now, &written)
		}
		if in == nil {
			written.Turns = tx.turnsAfter(ends, had)
		}
		return nil
	})
	if err != nil {
		return eventqueue.Written{}, err
	}
	return written, nil
}

// finishAll is one statement: it writes the ends that leave the table, or those
// that stay, and answers for each.
func (tx *Tx) finishAll(ends []eventqueue.End, leave, keep bool, now time.Time, written *eventqueue.Written) {
	done := map[eventqueue.Claim]bool{} // a claim that is given twice is written once
	for i := range ends {
		end := &ends[i]
		if leaves(end.Label) != leave {
			continue
		}
		row, ok := tx.row(end.Event)
		switch {
		case done[end.Claim]:
			written.Done = append(written.Done, end.Event)
		case !ok || !holds(&row, end.Claim):
			written.Lost = append(written.Lost, end.Event)
		case tx.mayWrite(end.Event):
			tx.finish(&row, end, keep, now)
			done[end.Claim] = true
			written.Done = append(written.Done, end.Event)
		}
	}
}

// leaves tells whether an end deletes the row.
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

// fails tells whether an end writes the event's last error.
func fails(label machine.Label) bool {
	return label == machine.RetryTooMany || label == machine.FailedForGood
}

// finish writes one end whose claim holds.
func (tx *Tx) finish(row *Row, end *eventqueue.End, keep bool, now time.Time) {
	if leaves(end.Label) {
		tx.keep(row, end, keep, now)
		tx.stamp(row, now)
		tx.write(row.ID, nil)
		return
	}
	row.LockedAt = time.Time{}
	if end.Label == machine.RetryAllowed {
		row.Retries++
	}
	if end.Label != machine.Released {
		// A longer wait than the notifier's is owed a notification.
		delay := end.Delay.Truncate(time.Microsecond) + time.Microsecond // never early (I6)
		row.DelayUntil, row.NotifiedAt = now.Add(delay), time.Time{}
		if delay <= eventqueue.MaxRequeue {
			row.NotifiedAt = row.DelayUntil
		}
	}
	if end.Label == machine.OverLimit {
		if row.LimitedAttempt == -limitedAttempt(row.Attempts) { // changed since it was asked
			row.DelayUntil, row.NotifiedAt = now, time.Time{}
		}
		row.LimitedAttempt = limitedAttempt(row.Attempts)
	}
	tx.write(row.ID, row)
}

// keep writes the history of an event that leaves the table.
func (tx *Tx) keep(row *Row, end *eventqueue.End, keep bool, now time.Time) {
	entry := LogRow{
		ID: row.ID, Canvas: row.Canvas, Module: row.Module, Name: row.Name, Modifier: row.Modifier, Value: row.Value,
		Status: eventqueue.LogFailed, Retries: row.Retries, Attempts: row.Attempts, LastError: end.LastError,
		EnqueuedAt: row.EnqueuedAt, CreatedAt: now, OrderingKey: row.OrderingKey,
	}
	if end.Label == machine.ExecutesToCompletion {
		if !keep {
			return
		}
		entry.Status, entry.LastError = eventqueue.LogCompleted, ""
	}
	tx.logged[row.ID] = entry
}
