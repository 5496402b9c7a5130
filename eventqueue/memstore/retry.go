package memstore

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
)

// Retry implements operate.RetryStore.
func (s *Store) Retry(ctx context.Context, edit operate.Edit, ids []eventqueue.EventID) (results []operate.Retried, err error) {
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

func (tx *Tx) retry(id eventqueue.EventID, edit operate.Edit) operate.Retried {
	db := tx.store.db
	logged, ended := db.log[id]
	_, queued := tx.row(id)
	result := operate.Retried{ID: id, Result: operate.RetryUnknown}
	switch {
	case ended && logged.Status == maintenance.LogCompleted:
		result.Result = operate.RetryCompleted
	case ended && outdated(edit, logged.Value, logged.Attributes):
		result.Result = operate.RetryOutdated
	case ended && queued: // a row that was put back by hand
		result.Result, result.Err = operate.RetryRefused, refusal("23505", "an event of that id is in the queue")
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

// DeleteLogged implements operate.RetryStore.
func (s *Store) DeleteLogged(ctx context.Context, ids []eventqueue.EventID) (deleted []eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpDeleteLogged, func() {
		for _, id := range sortedOnce(ids) {
			if logged, ended := s.db.log[id]; ended && logged.Status != maintenance.LogCompleted {
				delete(s.db.log, id)
				deleted = append(deleted, id)
			}
		}
	})
	return resultOf(deleted, err)
}
