package fallback_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
)

// promisedStart is within what time an event starts after any single failure.
const promisedStart = 2 * time.Second

// losing is a store that loses the answers of takes. Of its searches it says before what they take.
type losing struct {
	*pgstore.Store
	lose func(ctx context.Context) error

	mu     sync.Mutex
	losses int       // that are left
	at     time.Time // when the last answer began to be lost
}

// searches are those of a losing store.
type searches struct {
	of    *losing
	await maintenance.AwaitTake
}

func (l *losing) Awaiting(await maintenance.AwaitTake) maintenance.Searches {
	return searches{l, await}
}

// answer loses the answer of a statement that has taken something.
func (l *losing) answer(ctx context.Context, taken []eventqueue.Notification, over func(error)) error {
	l.mu.Lock()
	if len(taken) == 0 || l.losses == 0 {
		l.mu.Unlock()
		over(nil)
		return nil
	}
	l.losses--
	l.at = time.Now()
	l.mu.Unlock()
	err := l.lose(ctx)
	over(err)
	return err
}

func idsOf(of []eventqueue.Notification) (ids []eventqueue.EventID) {
	for _, n := range of {
		ids = append(ids, n.Event)
	}
	return ids
}

func (l *losing) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	due, err := l.Store.TakeDue(ctx, within, limit, nil)
	if err == nil {
		err = l.answer(ctx, due, await(idsOf(due)))
	}
	return due, err
}

func (s searches) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	lost, next, err := s.of.TakeRound(ctx, after, lostAfter)
	if err == nil {
		err = s.of.answer(ctx, lost, s.await(idsOf(lost)))
	}
	return lost, next, err
}

func (s searches) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	swept, err := s.Sweep(ctx, after, limit, lostAfter)
	return swept.Lost, swept.Next, err
}

func (s searches) Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (maintenance.Swept, error) {
	swept, err := s.of.Sweep(ctx, after, limit, lostAfter)
	if err == nil {
		err = s.of.answer(ctx, swept.Lost, s.await(idsOf(swept.Lost)))
	}
	return swept, err
}

// TestEventStartsInTimeDespiteALostAnswer (I19): of a poll, and of a search for lost notifications, without a
// relay's help.
func TestEventStartsInTimeDespiteALostAnswer(t *testing.T) {
	t.Parallel()
	for how, lose := range map[string]func(ctx context.Context) error{
		"cut":    func(context.Context) error { return errors.New("the connection was cut") },
		"silent": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		for what, mode := range map[string]eventqueue.NotifyMode{"poll": eventqueue.NotifyModeLater, "search": eventqueue.NotifyModeSelf} {
			rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
				store := &losing{Store: pgstore.New(pool), lose: lose, losses: 1}
				notifier := &switchable{Notifier: memnotify.New(memnotify.Config{})}
				notifier.set(true)
				receiver, err := fallback.New(notifier, store, fallback.Config{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = receiver.Attend(ctx) })
				began := make(chan time.Time, 2)
				for range 2 { // as a worker does
					running.Go(func() {
						for ctx.Err() == nil {
							deliveries, err := receiver.Pull(ctx, 10)
							for range deliveries {
								began <- time.Now()
							}
							if err != nil {
								<-time.After(150 * time.Millisecond)
							}
						}
					})
				}
				<-time.After(time.Minute)
				event := eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "M", Name: "n", Modifier: "_", Value: json.RawMessage("1")}
				if _, err := store.Insert(ctx, nil, []eventqueue.NewEvent{event}, mode); err != nil {
					t.Fatal(err)
				}
				select {
				case at := <-began:
					if late := at.Sub(store.at); store.at.IsZero() || late > promisedStart {
						t.Errorf("%s, %s: the event begins %s after the failure", what, how, late)
					}
				case <-time.After(time.Hour):
					t.Errorf("%s, %s: the event does not begin", what, how)
				}
				stop()
				running.Wait()
			})
		}
	}
}
