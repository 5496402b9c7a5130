package operate

import (
	"context"
	"errors"
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/internal/refusal"
)

// RetriedAll counts what a retry of many events did.
type RetriedAll struct {
	// Moved are back in the queue.
	Moved int
	// Refused were refused by the database, and FirstRefused are the first of them.
	Refused      int
	FirstRefused []Retried
}

func (a *RetriedAll) add(results []Retried) {
	for _, r := range results {
		switch r.Result {
		case RetryMoved:
			a.Moved++
		case RetryRefused:
			if a.Refused++; a.Refused <= namedRefusals {
				a.FirstRefused = append(a.FirstRefused, r)
			}
		default: // somebody else has moved or deleted it
		}
	}
}

// RetryAll is RetryEdited for the events that a filter selects and that were in event_log when it
// began, MaxRetryEvents in a statement; the zero Edit changes none of them. When ctx ends, RetryAll
// stops between two statements; the counts are exact, also with an error.
func (r *Retrier) RetryAll(ctx context.Context, filter EventFilter, edit Edit) (done RetriedAll, err error) {
	if !edit.isZero() {
		if err := edit.Check(r.queue.Limits()); err != nil {
			return done, fmt.Errorf("retry events: %w", err)
		}
	}
	err = r.each(ctx, filter, func(ids []eventqueue.EventID) error {
		results, err := toTheEnd(ctx, ids, func(ctx context.Context, ids ...eventqueue.EventID) ([]Retried, error) {
			return r.retry(ctx, edit, ids)
		})
		done.add(results)
		return err
	})
	if err != nil {
		return done, fmt.Errorf("retry events: %w", err)
	}
	return done, nil
}

// CountLogged returns how many events of event_log a filter selects now. It blocks for one statement
// per selectPage events of event_log.
func (r *Retrier) CountLogged(ctx context.Context, filter EventFilter) (count int, err error) {
	err = r.each(ctx, filter, func(ids []eventqueue.EventID) error {
		count += len(ids)
		return nil
	})
	if err != nil {
		return count, fmt.Errorf("count events of event_log: %w", err)
	}
	return count, nil
}

// DeleteLogged deletes the failed, or cancelled, events from event_log that a filter selects and that
// were there when it began, MaxRetryEvents in a statement, and returns how many those were, also with
// an error. They can no longer be retried. When ctx ends, it stops between two statements. Events that
// the database refuses to delete cost the others nothing; at the end, the error names the first.
func (r *Retrier) DeleteLogged(ctx context.Context, filter EventFilter) (deleted int, err error) {
	var first *refusal.Error
	refused := 0
	err = r.each(ctx, filter, func(ids []eventqueue.EventID) error {
		gone, err := toTheEnd(ctx, ids, func(ctx context.Context, ids ...eventqueue.EventID) ([]eventqueue.EventID, error) {
			return r.store.DeleteLogged(ctx, ids)
		})
		deleted += len(gone)
		var some *refusal.Error
		if !errors.As(err, &some) {
			return err
		}
		refused += len(some.Rows)
		if first == nil {
			first = some
		}
		return nil
	})
	if err == nil && first != nil {
		err = fmt.Errorf("the database refuses to delete %d of them, the first is event %s: %w", refused, first.Rows[0].Event, first.Rows[0].Err)
	}
	if err != nil {
		return deleted, fmt.Errorf("delete events of event_log: %w", err)
	}
	return deleted, nil
}

// each calls f with the events of event_log that a filter selects, no more than MaxRetryEvents at a
// time, and none that have come in since it began.
func (r *Retrier) each(ctx context.Context, filter EventFilter, f func(ids []eventqueue.EventID) error) error {
	if err := filter.ValidateLogged(); err != nil {
		return err
	}
	last, err := r.store.LastLogged(ctx)
	if err != nil {
		return err
	}
	return eachPage(ctx, last, MaxRetryEvents, func(after eventqueue.EventID) ([]eventqueue.EventID, eventqueue.EventID, error) {
		return r.store.SelectLogged(ctx, filter, after, last, selectPage)
	}, f)
}
