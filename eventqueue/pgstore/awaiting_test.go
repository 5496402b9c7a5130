package pgstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/test/testenv"
)

// TestSearchAwaitsWhatItMayTake (I19), of each search for lost notifications: whoever searches can mark it
// as pending if the answer is lost. A search that takes nothing awaits nothing.
func TestSearchAwaitsWhatItMayTake(t *testing.T) {
	t.Parallel()
	round := func(stage maintenance.RoundStage) func(context.Context, maintenance.Searches) ([]eventqueue.Notification, error) {
		return func(ctx context.Context, s maintenance.Searches) ([]eventqueue.Notification, error) {
			lost, _, err := s.TakeRound(ctx, maintenance.RoundPlace{Stage: stage}, time.Minute)
			return lost, err
		}
	}
	for name, c := range map[string]struct {
		of   pageCase
		take func(context.Context, maintenance.Searches) ([]eventqueue.Notification, error)
	}{
		"Sweep": {pageCases["Sweep"], func(ctx context.Context, s maintenance.Searches) ([]eventqueue.Notification, error) {
			swept, err := s.Sweep(ctx, 0, 100, time.Minute)
			return swept.Lost, err
		}},
		"TakeRound of handlers": {pageCases["TakeRound of handlers"], round(maintenance.RoundOfHandlers)},
		"TakeRound of groups":   {pageCases["TakeRound of groups"], round(maintenance.RoundOfGroups)},
		"TakeRound of runs":     {pageCases["TakeRound of runs"], round(maintenance.RoundOfRuns)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ctx := testenv.Context(t)
			search := func(ctx context.Context) (a awaitedTakes, taken []eventqueue.Notification, err error) {
				taken, err = c.take(ctx, r.store.Awaiting(a.await))
				return a, taken, err
			}
			prepare := func() []eventqueue.EventID {
				e := []eventqueue.NewEvent{event(), event()}
				if c.of.keys {
					e[0].OrderingKey, e[1].OrderingKey = "a", "b"
				}
				ids := r.insert(e...)
				c.of.prepareEvents(r, ids)
				return ids
			}
			ids := prepare()
			a, taken, err := search(ctx)
			if err != nil || len(taken) != 2 || !slices.Equal(a.ids, ids) || a.over != 1 || a.lost != 0 {
				t.Errorf("%d events were taken, %v; awaited were %+v, want %v", len(taken), err, a, ids)
			}
			if a, taken, err = search(ctx); err != nil || len(taken) != 0 || a.over != 0 {
				t.Errorf("again %d events were taken, %v; awaited were %+v", len(taken), err, a)
			}
			r.exec(c.of.prepare)
			r.exec(`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$`)
			r.exec(`CREATE TRIGGER hang AFTER UPDATE ON events_v2 FOR EACH ROW EXECUTE FUNCTION hang()`)
			ended, cancel := context.WithTimeout(ctx, 10*time.Second) // in which the statement has come to hang
			defer cancel()
			if a, _, err := search(ended); !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(a.ids, ids) || a.lost != 1 {
				t.Errorf("without an answer %v; awaited were %+v, want %v", err, a, ids)
			}
		})
	}
}
