package memstore

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
)

// Retry implements operate.ChangeStore.
func (s *Store) Retry(ctx context.Context, edit operate.Edit, ids []eventqueue.EventID) (results []operate.Changed, err error) {
	err = s.inTx(ctx, nil, OpRetry, func(tx *Tx) error {
		if err := checkTexts(string(edit.Value)); err != nil {
			return err
		}
		for _, id := range sortedOnce(ids) {
			results = append(results, tx.retry(id, edit))
		}
		return nil
	})
	return resultOf(results, err)
}

func (tx *Tx) retry(id eventqueue.EventID, edit operate.Edit) operate.Changed {
	db := tx.store.db
	logged, ended := db.log[id]
	_, queued := tx.row(id)
	result := operate.Changed{ID: id, Result: operate.ChangeUnknown}
	switch {
	case ended && logged.Status == maintenance.LogCompleted:
		result.Result = operate.ChangeCompleted
	case ended && outdated(edit, logged.Value, logged.Attributes):
		result.Result = operate.ChangeOutdated
	case ended && queued: // a row that was put back by hand
		result.Result, result.Err = operate.ChangeRefused, refusal("23505", "an event of that id is in the queue")
	case ended:
		result.Result = operate.RetryMoved
		now := db.now()
		row := Row{ID: id, Canvas: logged.Canvas, Module: logged.Module, Name: logged.Name, Modifier: logged.Modifier, Value: logged.Value,
			DelayUntil: now, EnqueuedAt: logged.EnqueuedAt, Attempts: logged.Attempts, UniqueFor: db.expiries[id].UniqueFor,
			OrderingKey: logged.OrderingKey, Attributes: logged.Attributes, Parent: logged.Parent}
		if row.OrderingKey != "" {
			row.Group = groupLater
		}
		row.apply(edit, now)
		tx.unlogged = append(tx.unlogged, id)
		tx.write(id, &row)
		tx.wake = true
	case queued:
		result.Result = operate.RetryQueued
	}
	return result
}

// DeleteLogged implements operate.ChangeStore.
func (s *Store) DeleteLogged(ctx context.Context, ids []eventqueue.EventID) (deleted []operate.Changed, err error) {
	err = s.atOnce(ctx, OpDeleteLogged, func() {
		for _, id := range sortedOnce(ids) {
			if logged, ended := s.db.log[id]; ended && logged.Status != maintenance.LogCompleted {
				delete(s.db.log, id)
				deleted = append(deleted, operate.Changed{ID: id, Result: operate.ChangeDone})
			}
		}
	})
	return resultOf(deleted, err)
}
