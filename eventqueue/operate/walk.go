package operate

import (
	"cmp"
	"context"
	"fmt"

	"eventsv2/eventqueue"
)

type (
	// changeFunc changes events, such as Changer.Requeue.
	changeFunc func(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error)

	// pageFunc selects events of a page, such as SelectStore.Select.
	pageFunc func(ctx context.Context, filter EventFilter, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, eventqueue.EventID, error)
)

// walk is how the events of a change are found and changed.
type walk struct {
	last func(ctx context.Context) (eventqueue.EventID, error)
	page pageFunc
	// size is how many events a piece has.
	size   int
	change changeFunc // nil: a replay, of which each piece emits
}

// walkOf refuses a verb that it does not know, as of an operation that a newer program has counted. Events are cancelled in
// the name of an actor, unless the change has one.
func walkOf(store Store, queue *eventqueue.Queue, c Change, actor string) (walk, error) {
	changer := &Changer{store, queue}
	switch c.Verb {
	case VerbCancel:
		return walk{store.LastQueued, store.Select, MaxChangeEvents, func(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
			return changer.Cancel(ctx, Cancellation{Reason: c.Reason, Actor: cmp.Or(c.Actor, actor)}, ids...)
		}}, nil
	case VerbDelete:
		return walk{store.LastQueued, store.Select, MaxChangeEvents, changer.Delete}, nil
	case VerbEdit:
		return walk{store.LastQueued, store.Select, MaxChangeEvents, func(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
			return changer.Edit(ctx, c.Edit, ids...)
		}}, nil
	case VerbRun:
		return walk{store.LastQueued, store.Select, MaxRequeueEvents, changer.Requeue}, nil
	case VerbRetry:
		return walk{store.LastLogged, store.SelectLogged, MaxRetryEvents, func(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
			return changer.RetryEdited(ctx, c.Edit, ids...)
		}}, nil
	case VerbDeleteEnded:
		return walk{store.LastLogged, store.SelectLogged, MaxRetryEvents, changer.DeleteLogged}, nil
	case VerbReplay:
		return walk{store.LastLogged, selectEnded(store), replayPiece(c), nil}, nil
	default:
		return walk{}, fmt.Errorf("verb: %q is unknown to this program: a newer one has counted the operation, and has to make it", c.Verb)
	}
}
