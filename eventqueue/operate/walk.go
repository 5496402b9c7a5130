package operate

import (
	"context"
	"fmt"

	"eventsv2/eventqueue"
)

// changeFunc changes events, and has the results in the words of a Changer.
type changeFunc func(ctx context.Context, ids []eventqueue.EventID) ([]ChangeResult, error)

// pageFunc selects events of a page, as SelectStore.Select.
type pageFunc func(ctx context.Context, filter EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error)

// walk is how the events of a change are found and changed.
type walk struct {
	last func(ctx context.Context) (eventqueue.EventID, error)
	page pageFunc
	// size is how many events a piece has.
	size   int
	change func(queue *eventqueue.Queue) (changeFunc, error)
}

// walkOf refuses a verb that it does not know, as of an operation that a newer program has counted.
func walkOf(store Store, c Change, actor string) (walk, error) {
	switch c.Verb {
	case VerbRetry:
		return walk{store.LastLogged, store.SelectLogged, MaxRetryEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return retryFunc(store, queue, c) }}, nil
	case VerbRun:
		return walk{store.LastQueued, store.Select, MaxRequeueEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return runFunc(store, queue) }}, nil
	case VerbReplay: // a piece emits by itself
		return walk{store.LastLogged, selectEnded(store), replayPiece(c), func(*eventqueue.Queue) (changeFunc, error) { return nil, nil }}, nil
	case VerbCancel, VerbDelete, VerbEdit:
		return walk{store.LastQueued, store.Select, MaxChangeEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return changerFunc(store, queue, c, actor) }}, nil
	default:
		return walk{}, fmt.Errorf("verb: %q is unknown to this program: a newer one has counted the operation, and has to make it", c.Verb)
	}
}

func retryFunc(store Store, queue *eventqueue.Queue, c Change) (changeFunc, error) {
	retrier, err := NewRetrier(store, queue)
	return func(ctx context.Context, ids []eventqueue.EventID) ([]ChangeResult, error) {
		var retried []Retried
		var err error
		if c.edits() {
			retried, err = retrier.RetryEdited(ctx, c.Edit, ids...)
		} else {
			retried, err = retrier.Retry(ctx, ids...)
		}
		return resultsOf(retried, func(r Retried) (ChangeResult, bool) {
			return ChangeResult(r.Result), r.Result == RetryMoved
		}), err
	}, err
}

func runFunc(store Store, queue *eventqueue.Queue) (changeFunc, error) {
	requeuer, err := NewRequeuer(store, queue)
	return func(ctx context.Context, ids []eventqueue.EventID) ([]ChangeResult, error) {
		requeued, err := requeuer.Requeue(ctx, ids...)
		return resultsOf(requeued, func(r Requeued) (ChangeResult, bool) {
			return ChangeResult(r.Result), r.Result == RequeueDone
		}), err
	}, err
}

func changerFunc(store Store, queue *eventqueue.Queue, c Change, actor string) (changeFunc, error) {
	changer, err := NewChanger(store, queue)
	return func(ctx context.Context, ids []eventqueue.EventID) (results []ChangeResult, err error) {
		var changed []Changed
		switch c.Verb {
		case VerbCancel:
			changed, err = changer.Cancel(ctx, Cancellation{Reason: c.Reason, Actor: actor}, ids...)
		case VerbDelete:
			changed, err = changer.Delete(ctx, ids...)
		default:
			changed, err = changer.Edit(ctx, c.Edit, ids...)
		}
		return resultsOf(changed, func(r Changed) (ChangeResult, bool) { return r.Result, r.Result == ChangeDone }), err
	}, err
}

// resultsOf returns the results of a change; done says of each whether it was made.
func resultsOf[R any](results []R, done func(R) (ChangeResult, bool)) []ChangeResult {
	words := make([]ChangeResult, len(results))
	for i, r := range results {
		word, is := done(r)
		if words[i] = word; is {
			words[i] = ChangeDone
		}
	}
	return words
}
