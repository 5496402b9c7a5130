package eventqueue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/memstore"
	"eventsv2/test/testenv"
)

// TestAWorkerKeepsTheEndOfAKey, in whatever way the event ends, and in a batch with
// events that have none.
func TestAWorkerKeepsTheEndOfAKey(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		r := newRig(t)
		r.handle(func(ctx context.Context, run *eventqueue.Run) error {
			switch string(run.Value) {
			case `"fail"`:
				return eventqueue.Permanent(errors.New("no luck"))
			case `"tx"`:
				return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
			default:
				return nil
			}
		}, quick())
		r.start(eventqueue.WorkerConfig{KeepHistory: keep})
		var events []eventqueue.NewEvent
		for _, value := range []string{`"complete"`, `"fail"`, `"tx"`} {
			e := r.event(value)
			e.UniqueKey, e.UniqueFor = value, time.Hour
			short := r.event(value)
			short.UniqueKey = "short " + value
			events = append(events, e, r.event(value), short)
		}
		ids := r.emit(events...)
		r.outcomes.await(t, machine.ExecutesToCompletion, 6)
		r.outcomes.await(t, machine.FailedForGood, 3)
		if n := one[int](r, `SELECT count(*) FROM unique_ends WHERE expires_at - clock_timestamp() BETWEEN interval '50 min' AND interval '1 hour'`); n != 3 {
			t.Errorf("%d ends are kept, want 3", n)
		}
		again, err := r.queue.EmitUnique(testenv.Context(t), events...)
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

// TestTheRelayRemovesKeys once per hour, and not more often; a failure waits for
// the next time.
func TestTheRelayRemovesKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		var looks, fails atomic.Int32
		store.Inject(memstore.Faults{Before: func(_ context.Context, op memstore.Op) error {
			if op != memstore.OpForgetKeys {
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
		relay, err := eventqueue.NewRelay(store, memnotify.New(memnotify.Config{}), eventqueue.RelayConfig{Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		events := []eventqueue.NewEvent{{Canvas: canvas, Module: "M", Name: "n", Modifier: "_", Value: []byte(`1`), UniqueKey: "k"}}
		rows, err := store.Insert(t.Context(), nil, events, eventqueue.AnnounceSelf)
		if err != nil {
			t.Fatal(err)
		}
		everywhere := eventqueue.Known{Everywhere: []eventqueue.HandlerKey{events[0].Handler()}}
		found, err := store.Claim(t.Context(), []eventqueue.EventID{rows[0].ID}, everywhere, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		end := eventqueue.End{Claim: eventqueue.Claim{Event: rows[0].ID, Attempt: found[0].Attempt}, Label: machine.ExecutesToCompletion}
		if _, err := store.Finish(t.Context(), nil, []eventqueue.End{end}, false); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- relay.Run(ctx) }()
		time.Sleep(61 * time.Minute)
		if n := looks.Load(); n != 1 || len(store.Keys()) != 1 || logs.FilterMessageSnippet("could not remove").Len() != 1 {
			t.Errorf("in the first hour the relay looked %d times, and left %v", n, store.Keys())
		}
		time.Sleep(time.Hour)
		if n := looks.Load(); n != 2 || len(store.Keys()) != 0 || logs.FilterMessageSnippet("removed unique keys").Len() != 1 {
			t.Errorf("in two hours the relay looked %d times, and left %v", n, store.Keys())
		}
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}
