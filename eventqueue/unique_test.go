package eventqueue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestWorkerKeepsTheEndOfAKey, in whatever way the event ends, and in a batch with
// events that have none.
func TestWorkerKeepsTheEndOfAKey(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		r := rig.New(t)
		r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
			switch string(run.Value) {
			case `"fail"`:
				return eventqueue.Permanent(errors.New("no luck"))
			case `"tx"`:
				return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
			default:
				return nil
			}
		}, rig.Quick())
		r.Start(worker.Config{RetainHistory: keep})
		var events []eventqueue.NewEvent
		for _, value := range []string{`"complete"`, `"fail"`, `"tx"`} {
			e := r.Event(value)
			e.UniqueKey, e.UniqueFor = value, time.Hour
			short := r.Event(value)
			short.UniqueKey = "short " + value
			events = append(events, e, r.Event(value), short)
		}
		ids := r.Emit(events...)
		r.Outcomes.Await(t, machine.ExecutesToCompletion, 6)
		r.Outcomes.Await(t, machine.FailedForGood, 3)
		if n := rig.One[int](r, `SELECT count(*) FROM unique_expiries WHERE expires_at - clock_timestamp() BETWEEN interval '50 min' AND interval '1 hour'`); n != 3 {
			t.Errorf("%d ends are kept, want 3", n)
		}
		again, err := r.Queue.EmitUnique(testenv.Context(t), events...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			held := events[i].UniqueFor > 0
			if again[i].New == held || held != (again[i].ID == ids[i]) {
				t.Errorf("event %d was %s, and its repeat is %+v", i, ids[i], again[i])
			}
		}
	}
}

// TestRelayRemovesKeys once per hour, and not more often; a failure waits for
// the next time.
func TestRelayRemovesKeys(t *testing.T) {
	t.Parallel()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		store := rig.Faulty(pgstore.New(pool), rig.Faults{})
		keys := func() int { return rig.Scalar[int](t, pool, `SELECT count(*) FROM unique_keys`) }
		var looks, fails atomic.Int32
		store.Inject(rig.Faults{Before: func(_ context.Context, op rig.Op) error {
			if op != rig.OpDeleteKeys {
				return nil
			}
			looks.Add(1)
			if fails.Add(-1) >= 0 {
				return errors.New("no luck")
			}
			return nil
		}})
		fails.Store(1)
		core, logs := observer.New(zap.InfoLevel)
		relay, err := maintenance.NewRelay(store, memnotify.New(memnotify.Config{}), maintenance.RelayConfig{
			Jitter: func(most time.Duration) time.Duration { return most / 2 }, // it looks after half an hour, and then each hour
			Logger: zap.New(core),
		})
		if err != nil {
			t.Fatal(err)
		}
		events := []eventqueue.NewEvent{{Canvas: rig.Canvas, Module: "M", Name: "n", Modifier: "_", Value: []byte(`1`), UniqueKey: "k"}}
		rows, err := store.Insert(t.Context(), nil, events, eventqueue.NotifyModeSelf)
		if err != nil {
			t.Fatal(err)
		}
		everywhere := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{events[0].Handler()}}
		found, err := store.Claim(t.Context(), []eventqueue.EventID{rows[0].ID}, everywhere, 0)
		if err != nil {
			t.Fatal(err)
		}
		end := worker.Completion{Claim: worker.Claim{Event: rows[0].ID, Attempt: found[0].Attempt}, Label: machine.ExecutesToCompletion}
		if _, err := store.Complete(t.Context(), nil, []worker.Completion{end}, false); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- relay.Run(ctx) }()
		time.Sleep(61 * time.Minute)
		if n := looks.Load(); n != 1 || keys() != 1 || logs.FilterMessageSnippet("could not remove").Len() != 1 {
			t.Errorf("in the first hour the relay looked %d times, and left %d", n, keys())
		}
		time.Sleep(time.Hour)
		if n := looks.Load(); n != 2 || keys() != 0 || logs.FilterMessageSnippet("removed expired unique keys").Len() != 1 {
			t.Errorf("in two hours the relay looked %d times, and left %d", n, keys())
		}
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}
