package bulk

import (
	"context"
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/pgstore"
)

// changeFunc changes events, and has the results in the words of a control.Changer.
type changeFunc func(ctx context.Context, ids []eventqueue.EventID) ([]control.ChangeResult, error)

// pageFunc selects events of a page, as Select of pgstore.Store.
type pageFunc func(ctx context.Context, filter control.EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error)

// walk is how the events of a change are found and changed.
type walk struct {
	last func(ctx context.Context) (eventqueue.EventID, error)
	page pageFunc
	// size is how many events a piece has.
	size   int
	change func(queue *eventqueue.Queue) (changeFunc, error)
}

// walkOf refuses a verb that it does not know, as of an operation that a newer program has counted.
func walkOf(store *pgstore.Store, c Change, actor string) (walk, error) {
	switch c.Verb {
	case Retry:
		return walk{store.LastLogged, store.SelectLogged, control.MaxRetryEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return retryFunc(store, queue, c) }}, nil
	case Run:
		return walk{store.LastQueued, store.Select, control.MaxRequeueEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return runFunc(store, queue) }}, nil
	case Replay: // a piece emits by itself
		return walk{store.LastLogged, selectEnded(store), replayPiece(c), func(*eventqueue.Queue) (changeFunc, error) { return nil, nil }}, nil
	case Cancel, Delete, Edit:
		return walk{store.LastQueued, store.Select, control.MaxChangeEvents, func(queue *eventqueue.Queue) (changeFunc, error) { return changerFunc(store, queue, c, actor) }}, nil
	default:
		return walk{}, fmt.Errorf("verb: %q is unknown to this program: a newer one has counted the operation, and has to make it", c.Verb)
	}
}

func retryFunc(store *pgstore.Store, queue *eventqueue.Queue, c Change) (changeFunc, error) {
	retrier, err := control.NewRetrier(store, queue)
	return func(ctx context.Context, ids []eventqueue.EventID) ([]control.ChangeResult, error) {
		var retried []control.Retried
		var err error
		if c.edits() {
			retried, err = retrier.RetryEdited(ctx, c.Edit, ids...)
		} else {
			retried, err = retrier.Retry(ctx, ids...)
		}
		return resultsOf(retried, func(r control.Retried) (control.ChangeResult, bool) {
			return control.ChangeResult(r.Result), r.Result == control.RetryMoved
		}), err
	}, err
}

func runFunc(store *pgstore.Store, queue *eventqueue.Queue) (changeFunc, error) {
	requeuer, err := control.NewRequeuer(store, queue)
	return func(ctx context.Context, ids []eventqueue.EventID) ([]control.ChangeResult, error) {
		requeued, err := requeuer.Requeue(ctx, ids...)
		return resultsOf(requeued, func(r control.Requeued) (control.ChangeResult, bool) {
			return control.ChangeResult(r.Result), r.Result == control.RequeueDone
		}), err
	}, err
}

func changerFunc(store *pgstore.Store, queue *eventqueue.Queue, c Change, actor string) (changeFunc, error) {
	changer, err := control.NewChanger(store, queue)
	return func(ctx context.Context, ids []eventqueue.EventID) (results []control.ChangeResult, err error) {
		var changed []control.Changed
		switch c.Verb {
		case Cancel:
			changed, err = changer.Cancel(ctx, control.Cancellation{Reason: c.Reason, Actor: actor}, ids...)
		case Delete:
			changed, err = changer.Delete(ctx, ids...)
		default:
			changed, err = changer.Edit(ctx, c.Edit, ids...)
		}
		return resultsOf(changed, func(r control.Changed) (control.ChangeResult, bool) { return r.Result, r.Result == control.ChangeDone }), err
	}, err
}

// resultsOf returns the results of a change; done says of each whether it was made.
func resultsOf[R any](results []R, done func(R) (control.ChangeResult, bool)) []control.ChangeResult {
	words := make([]control.ChangeResult, len(results))
	for i, r := range results {
		word, is := done(r)
		if words[i] = word; is {
			words[i] = control.ChangeDone
		}
	}
	return words
}
