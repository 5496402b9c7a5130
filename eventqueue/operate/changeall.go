package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// SelectStore is what finds the events of a filter; pgstore.Store is one.
type SelectStore interface {
	// LastQueued is the highest id in the queue, 0 when it is empty.
	LastQueued(ctx context.Context) (eventqueue.EventID, error)

	// Select reads no more than limit events of the queue, by id, that are above after and not above
	// last, and returns those that a valid filter selects. next is the last one that it read, 0 when
	// there are no more. It locks nothing.
	Select(ctx context.Context, filter EventFilter, after, last eventqueue.EventID, limit int) (ids []eventqueue.EventID, next eventqueue.EventID, err error)
}

// ChangedAll counts what a change of many events did.
type ChangedAll struct {
	// Changed are as it was asked for.
	Changed int
	// Running and Busy were refused, as by ChangeRunning and ChangeBusy.
	Running, Busy int
	// Refused were refused by the database, and FirstRefused are the first of them.
	Refused      int
	FirstRefused []Changed
}

// namedRefusals is how many refused events a change of many names.
const namedRefusals = 20

func (c *ChangedAll) add(results []Changed) {
	for _, r := range results {
		switch r.Result {
		case ChangeDone:
			c.Changed++
		case ChangeRunning:
			c.Running++
		case ChangeBusy:
			c.Busy++
		case ChangeRefused:
			if c.Refused++; c.Refused <= namedRefusals {
				c.FirstRefused = append(c.FirstRefused, r)
			}
		default: // it has ended since it was selected
		}
	}
}

// Count returns how many events of the queue a filter selects now, running ones as well. It blocks
// for one statement per selectPage events of the queue.
func (c *Changer) Count(ctx context.Context, filter EventFilter) (count int, err error) {
	err = eachQueued(ctx, c.store, filter, func(ids []eventqueue.EventID) error {
		count += len(ids)
		return nil
	})
	if err != nil {
		return count, fmt.Errorf("count events: %w", err)
	}
	return count, nil
}

// CancelAll is Cancel for the events that a filter selects and that were in the queue when it began,
// MaxChangeEvents in a transaction. An event is selected by what it was when it was read. When ctx
// ends, CancelAll stops between two transactions; the counts are exact, also with an error.
func (c *Changer) CancelAll(ctx context.Context, cancellation Cancellation, filter EventFilter) (ChangedAll, error) {
	if err := cancellation.Validate(); err != nil {
		return ChangedAll{}, fmt.Errorf("cancel events: %w", err)
	}
	return c.changeAll(ctx, "cancel", filter, func(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
		return c.Cancel(ctx, cancellation, ids...)
	})
}

// DeleteAll is CancelAll for Delete.
func (c *Changer) DeleteAll(ctx context.Context, filter EventFilter) (ChangedAll, error) {
	return c.changeAll(ctx, "delete", filter, c.Delete)
}

// EditAll is CancelAll for Edit: every event gets the same value, attributes or time.
func (c *Changer) EditAll(ctx context.Context, edit Edit, filter EventFilter) (ChangedAll, error) {
	if err := edit.Check(c.queue.Limits()); err != nil {
		return ChangedAll{}, fmt.Errorf("edit events: %w", err)
	}
	return c.changeAll(ctx, "edit", filter, func(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
		return c.Edit(ctx, edit, ids...)
	})
}

func (c *Changer) changeAll(ctx context.Context, verb string, filter EventFilter, change func(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error)) (done ChangedAll, err error) {
	err = eachQueued(ctx, c.store, filter, func(ids []eventqueue.EventID) error {
		results, err := toTheEnd(ctx, ids, change)
		done.add(results)
		return err
	})
	if err != nil {
		return done, fmt.Errorf("%s events: %w", verb, err)
	}
	return done, nil
}

// RequeueAll is Requeue for the events that a filter selects and that were in the queue when it began,
// as by Changer.CancelAll. Changed are the requeued ones, also those that a rule still holds back.
func (r *Requeuer) RequeueAll(ctx context.Context, filter EventFilter) (done ChangedAll, err error) {
	err = eachQueued(ctx, r.store, filter, func(ids []eventqueue.EventID) error {
		results, err := toTheEnd(ctx, ids, r.Requeue)
		for _, result := range results {
			done.add([]Changed{result.changed()})
		}
		return err
	})
	if err != nil {
		return done, fmt.Errorf("requeue events: %w", err)
	}
	return done, nil
}

// changed is the result in the words of a Changer.
func (r Requeued) changed() Changed {
	c := Changed{ID: r.ID, Result: ChangeResult(r.Result), LockRemaining: r.LockRemaining, Err: r.Err}
	if r.Result == RequeueDone {
		c.Result = ChangeDone
	}
	return c
}

// batchTimeout bounds one transaction of a change of many events.
const batchTimeout = 2 * time.Minute

// toTheEnd is not interrupted when ctx ends, so that the reported counts are exact.
func toTheEnd[T any](ctx context.Context, ids []eventqueue.EventID, change func(ctx context.Context, ids ...eventqueue.EventID) ([]T, error)) ([]T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	return change(ctx, ids...)
}

// selectPage is how many events one statement reads.
const selectPage = 5000

// eachQueued calls f with the events that a filter selects, no more than MaxChangeEvents at a time.
// Events that are emitted meanwhile are left out, so that it comes to an end.
func eachQueued(ctx context.Context, store SelectStore, filter EventFilter, f func(ids []eventqueue.EventID) error) error {
	if err := filter.ValidateQueued(); err != nil {
		return err
	}
	last, err := store.LastQueued(ctx)
	if err != nil {
		return err
	}
	return eachPage(ctx, last, MaxChangeEvents, func(after eventqueue.EventID) ([]eventqueue.EventID, eventqueue.EventID, error) {
		return store.Select(ctx, filter, after, last, selectPage)
	}, f)
}

// eachPage calls f with the events of all pages up to last, no more than size at a time. page returns
// those that are above an id, and the last that it has read, 0 when there are no more.
func eachPage(ctx context.Context, last eventqueue.EventID, size int, page func(after eventqueue.EventID) ([]eventqueue.EventID, eventqueue.EventID, error), f func(ids []eventqueue.EventID) error) error {
	for after := eventqueue.EventID(0); after < last; {
		ids, next, err := page(after)
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(ids, size) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(batch); err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		after = next
	}
	return nil
}
