package memstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/attributes"
)

// Remove implements operate.ChangeStore.
func (s *Store) Remove(ctx context.Context, ids []eventqueue.EventID, cancellation *operate.Cancellation) (results []operate.Changed, advanced []eventqueue.Event, err error) {
	err = s.inTx(ctx, nil, OpRemove, func(tx *Tx) error {
		now := s.db.now()
		if cancellation != nil {
			if err := checkTexts(cancellation.Reason, cancellation.Actor); err != nil {
				return err
			}
		}
		results = tx.changeFree(ids, now, func(row *Row) {
			if cancellation != nil {
				tx.logged[row.ID] = cancelled(row, cancellation, now)
			}
			tx.stamp(row, now)
			tx.write(row.ID, nil)
		})
		var gone []eventqueue.EventID
		for _, id := range sortedOnce(ids) {
			if _, there := tx.row(id); !there && tx.hasPlace(id) {
				gone = append(gone, id)
			}
		}
		if len(gone) > 0 {
			advanced = tx.advance(gone, nil, nil, false)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return results, advanced, nil
}

func cancelled(row *Row, cancellation *operate.Cancellation, now time.Time) LogRow {
	return LogRow{
		ID: row.ID, Canvas: row.Canvas, Module: row.Module, Name: row.Name, Modifier: row.Modifier, Value: row.Value,
		Status: maintenance.LogCancelled, Retries: row.Retries, Attempts: row.Attempts, EnqueuedAt: row.EnqueuedAt, CreatedAt: now,
		OrderingKey: row.OrderingKey, Attributes: row.Attributes, Parent: row.Parent, Reason: cancellation.Reason, Actor: cancellation.Actor,
	}
}

func (tx *Tx) hasPlace(id eventqueue.EventID) bool {
	for stage := stageKey; stage <= stageCanvas; stage++ {
		if _, there := tx.place(placeID{id, stage}); there {
			return true
		}
	}
	return false
}

// Edit implements operate.ChangeStore.
func (s *Store) Edit(ctx context.Context, edit operate.Edit, ids []eventqueue.EventID) (results []operate.Changed, err error) {
	err = s.inTx(ctx, nil, OpEdit, func(tx *Tx) error {
		now := s.db.now()
		if err := checkTexts(string(edit.Value)); err != nil {
			return err
		}
		var older []eventqueue.EventID
		results = tx.changeFree(ids, now, func(row *Row) {
			if outdated(edit, row.Value, row.Attributes) {
				older = append(older, row.ID)
				return
			}
			if edit.Retimes() || !row.LockedAt.IsZero() {
				row.NotifiedAt = time.Time{}
			}
			if edit.Retimes() {
				row.LimitedAttempt = 0
			}
			row.clearLock()
			row.apply(edit, now)
			tx.wake = tx.wake || row.NotifiedAt.IsZero()
			tx.write(row.ID, row)
		})
		for i := range results {
			if slices.Contains(older, results[i].ID) {
				results[i].Result = operate.ChangeOutdated
			}
		}
		return nil
	})
	return resultOf(results, err)
}

// outdated reports whether an edit is of another content.
func outdated(edit operate.Edit, value, held string) bool {
	return edit.Of != nil && (value != string(edit.Of.Value) || held != attributes.Encode(edit.Of.Attributes))
}

// apply changes what the edit names.
func (r *Row) apply(edit operate.Edit, now time.Time) {
	if edit.Value != nil {
		r.Value = string(edit.Value)
	}
	if edit.Attributes != nil {
		r.Attributes = attributes.Encode(edit.Attributes)
	}
	switch {
	case edit.Delay != nil:
		r.DelayUntil = now.Add(roundUp(*edit.Delay))
	case !edit.DelayUntil.IsZero():
		r.DelayUntil = latest(edit.DelayUntil.Add(time.Microsecond-1).Truncate(time.Microsecond), now)
	}
}

// clearLock takes an expired lock away, if there is one.
func (r *Row) clearLock() {
	if !r.LockedAt.IsZero() {
		r.takeLock()
	}
	r.LockedAt, r.LostRun = time.Time{}, false
}

// longest bounds how long a lock is said to be valid that a row has that was written by hand.
const longest = 876000 * time.Hour

// changeFree changes the events that nobody runs, and answers for each id once.
func (tx *Tx) changeFree(ids []eventqueue.EventID, now time.Time, change func(row *Row)) (results []operate.Changed) {
	for _, id := range sortedOnce(ids) {
		result := operate.Changed{ID: id}
		row, there := tx.row(id)
		logged, ended := tx.store.db.log[id]
		switch {
		case there && !tx.mayWrite(id):
			result.Result = operate.ChangeBusy
		case there:
			result.Scope = row.scope()
			if tx.store.db.unlocked(&row, now) {
				result.Result = operate.ChangeDone
				change(&row)
				break
			}
			result.Result, result.LockRemaining = operate.ChangeRunning, min(row.LockedAt.Add(tx.store.db.validFor()).Sub(now), longest)
		case ended:
			result.Result = operate.ChangeResult(strings.ToLower(string(logged.Status)))
		default:
			result.Result = operate.ChangeUnknown
		}
		results = append(results, result)
	}
	return results
}

// Requeue implements operate.ChangeStore.
func (s *Store) Requeue(ctx context.Context, ids []eventqueue.EventID) (results []operate.Changed, err error) {
	err = s.inTx(ctx, nil, OpRequeue, func(tx *Tx) error {
		now := s.db.now()
		takenOver, rules := map[eventqueue.EventID]bool{}, map[eventqueue.EventID]machine.Rule{}
		for _, c := range tx.changeFree(ids, now, func(row *Row) {
			takenOver[row.ID], rules[row.ID] = !row.LockedAt.IsZero(), s.db.rule(row)
			row.clearLock()
			row.DelayUntil, row.NotifiedAt = now, time.Time{}
			tx.wake = true
			tx.write(row.ID, row)
		}) {
			result := operate.Changed{ID: c.ID, Result: c.Result, LockRemaining: c.LockRemaining}
			if c.Done() {
				result.Result, result.TakenOver, result.Rule = operate.RequeueDone, takenOver[c.ID], rules[c.ID]
			}
			results = append(results, result)
		}
		return nil
	})
	return resultOf(results, err)
}
