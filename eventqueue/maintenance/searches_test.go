package maintenance_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
)

// promising is a store that says before a search what it takes, and loses the answer of the first that takes
// something.
type promising struct {
	*pgstore.Store
	lose   func(ctx context.Context) error
	losses chan struct{} // one for each that is left
	lostAt chan time.Time
}

type promisingSearches struct {
	*promising
	await maintenance.AwaitTake
}

func (p *promising) Awaiting(await maintenance.AwaitTake) maintenance.Searches {
	return promisingSearches{p, await}
}

func (s promisingSearches) answer(ctx context.Context, taken []eventqueue.Notification) error {
	if len(taken) == 0 {
		return nil
	}
	var ids []eventqueue.EventID
	for _, n := range taken {
		ids = append(ids, n.Event)
	}
	over := s.await(ids)
	var err error
	select {
	case <-s.losses:
		s.lostAt <- time.Now()
		err = s.lose(ctx)
	default:
	}
	over(err)
	return err
}

func (s promisingSearches) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	lost, next, err := s.Store.TakeRound(ctx, after, lostAfter)
	if err == nil {
		err = s.answer(ctx, lost)
	}
	return lost, next, err
}

func (s promisingSearches) Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (maintenance.Swept, error) {
	swept, err := s.Store.Sweep(ctx, after, limit, lostAfter)
	if err == nil {
		err = s.answer(ctx, swept.Lost)
	}
	return swept, err
}

// TestUnansweredSearchIsPublishedAgain (I19): an event whose notification was lost, and then the answer of the
// search that has found it, waits for no second interval.
func TestUnansweredSearchIsPublishedAgain(t *testing.T) {
	t.Parallel()
	for how, lose := range lossesOfAnswers {
		rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
			store := &promising{pgstore.New(pool), lose, make(chan struct{}, 1), make(chan time.Time, 1)}
			store.losses <- struct{}{}
			if _, err := store.Insert(t.Context(), nil, []eventqueue.NewEvent{{Canvas: beside, Module: "M", Name: "n", Modifier: "_", Value: []byte("1")}}, eventqueue.NotifyModeSelf); err != nil {
				t.Fatal(err)
			}
			published := make(publishedAt, 1)
			stop := running(t, store, published, maintenance.RelayConfig{})
			if late := (<-published).Sub(<-store.lostAt); late > promisedStart {
				t.Errorf("%s: the notification is published %s after the failure", how, late)
			}
			stop()
		})
	}
}
