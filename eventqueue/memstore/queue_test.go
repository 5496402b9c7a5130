package memstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

// program is a queue, a worker and a relay on a Store.
type program struct {
	store    *memstore.Store
	notifier *memnotify.Notifier
	queue    *eventqueue.Queue
	rules    *operate.Rules
	stop     func()
}

func start(t *testing.T, store *memstore.Store, handle eventqueue.HandlerFunc) *program {
	t.Helper()
	p := &program{store: store, notifier: memnotify.New(memnotify.Config{})}
	queue, err := eventqueue.New(store, p.notifier, eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	p.queue = queue
	if p.rules, err = operate.NewRules(store, queue); err != nil {
		t.Fatal(err)
	}
	handlers := eventqueue.NewHandlers()
	if err := handlers.Register(key, handle, eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(queue, store, p.notifier, handlers, worker.Config{RetainHistory: true})
	if err != nil {
		t.Fatal(err)
	}
	relay, err := maintenance.NewRelay(store, p.notifier, maintenance.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{w.Run, relay.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	p.stop = func() {
		cancel()
		running.Wait()
	}
	return p
}

func TestQueueRunsOnIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changes []memstore.Change
		store := memstore.New(memstore.Config{Observe: func(c memstore.Change) { changes = append(changes, c) }})
		var runs atomic.Int32
		p := start(t, store, func(ctx context.Context, run *eventqueue.Run) error {
			runs.Add(1)
			switch {
			case string(run.Value) == `"fails"`:
				return errors.New("it never works")
			case run.Retries == 0 && string(run.Value) == `"again"`:
				return errors.New("not yet")
			}
			return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
		})
		defer p.stop()
		p.notifier.Drop(1) // the relay makes up for it
		for _, value := range []string{`"lost"`, `"again"`, `"fails"`} {
			if _, err := p.queue.Emit(t.Context(), event(value)); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Hour)

		if rows := store.Events(); len(rows) != 0 {
			t.Errorf("these have not ended: %+v", rows)
		}
		log := store.Log()
		if len(log) != 3 || log[0].Status != maintenance.LogCompleted || log[1].Status != maintenance.LogCompleted || log[2].Status != maintenance.LogFailed {
			t.Errorf("event_log: %+v", log)
		}
		if got := runs.Load(); got != 1+2+3 {
			t.Errorf("%d runs", got)
		}
		replayed := map[eventqueue.EventID]memstore.Row{}
		for _, c := range changes {
			if c.Before != nil && *c.Before != replayed[c.Before.ID] {
				t.Errorf("a change of %+v, which was %+v", *c.Before, replayed[c.Before.ID])
			}
			if c.After != nil {
				replayed[c.After.ID] = *c.After
			} else {
				delete(replayed, c.Before.ID)
			}
		}
		if len(replayed) != 0 {
			t.Errorf("the changes leave %v", replayed)
		}
	})
}

func TestPausedEventsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		p := start(t, store, func(context.Context, *eventqueue.Run) error { return nil })
		defer p.stop()
		scope := eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: key.Name}
		if _, err := p.rules.Add(t.Context(), operate.PauseRule, scope); err != nil {
			t.Fatal(err)
		}
		if _, err := p.queue.EmitMany(t.Context(), []eventqueue.NewEvent{event(`1`), event(`2`)}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if rows := store.Events(); len(rows) != 2 || rows[0].Attempts != 0 {
			t.Errorf("while paused: %+v", rows)
		}
		if _, notified, err := p.rules.Lift(t.Context(), operate.PauseRule, scope); err != nil || notified != 2 {
			t.Errorf("lifting notified %d: %v", notified, err)
		}
		pass(time.Second)
		if log := store.Log(); len(log) != 2 || len(store.Rules()) != 0 {
			t.Errorf("event_log: %+v", log)
		}
	})
}

// A transaction of the caller's own wakes the relay, which listens.
func TestCommitWakesTheRelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		p := start(t, store, func(context.Context, *eventqueue.Run) error { return nil })
		defer p.stop()
		synctest.Wait()
		tx, err := store.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.queue.EmitTx(t.Context(), tx, event(`1`)); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Second) // less than the relay's own interval
		if log := store.Log(); len(log) != 1 {
			t.Errorf("event_log: %+v", log)
		}
	})
}

// pass lets time go by, by the bubble's clock, and everything happen that is due
// by then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
