package eventqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// failsOnce is the notifier as one program sees it: a publish that the test has chosen
// fails, and all others succeed.
type failsOnce struct {
	*memnotify.Notifier
	fail atomic.Bool
	sent atomic.Int32 // successes
}

func (f *failsOnce) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	if f.fail.Swap(false) {
		return errors.New("connection reset by peer")
	}
	f.sent.Add(1)
	return f.Notifier.Publish(ctx, notifications)
}

// deployment is an emitter, a worker and a relay, each a program with a view of the
// notifier of its own, in virtual time.
type deployment struct {
	t                      *testing.T
	store                  *pgstore.Store
	emitter, worker, relay *failsOnce
	queue                  *eventqueue.Queue

	mu sync.Mutex

	late map[eventqueue.EventID]time.Duration // from the emit to the start
}

// deploy starts one and calls f; the programs stop when f has returned.
func deploy(t *testing.T, f func(d *deployment)) {
	t.Helper()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		remote := memnotify.New(memnotify.Config{})
		d := &deployment{
			t: t, store: pgstore.New(pool),
			late: map[eventqueue.EventID]time.Duration{}, emitter: &failsOnce{Notifier: remote},
			worker: &failsOnce{Notifier: remote}, relay: &failsOnce{Notifier: remote},
		}
		d.queue = d.newQueue(d.emitter)
		handlers := eventqueue.NewHandlers()
		if err := handlers.Register(rig.Key, eventqueue.HandlerFunc(d.began), eventqueue.Policy{}); err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(d.newQueue(d.worker), d.store, d.worker, handlers, worker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		relay, err := maintenance.NewRelay(d.store, d.relay, maintenance.RelayConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = w.Run(ctx) })
		running.Go(func() { _ = relay.Run(ctx) })
		f(d)
		stop()
		running.Wait()
		if err := d.queue.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func (d *deployment) newQueue(notifier eventqueue.Publisher) *eventqueue.Queue {
	queue, err := eventqueue.New(d.store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		d.t.Fatal(err)
	}
	return queue
}

func (d *deployment) began(_ context.Context, run *eventqueue.Run) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late[run.ID] = time.Since(run.EnqueuedAt)
	return nil
}

// check fails the test when events have not begun, or later than after 2 s.
func (d *deployment) check(events int) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.late) != events {
		d.t.Errorf("%d events began, want %d", len(d.late), events)
	}
	for id, late := range d.late {
		if late > 2*time.Second {
			d.t.Errorf("event %s began %s after its emit", id, late)
		}
	}
}

func (d *deployment) event(orderingKey string) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name, Modifier: rig.Key.Modifier,
		Value: []byte(`1`), OrderingKey: orderingKey}
}

// TestOneFailedPublishDelaysNothing has one publish fail, of each program and in
// each way of emitting, between many that succeed.
func TestOneFailedPublishDelaysNothing(t *testing.T) {
	t.Parallel()
	ways := map[string]func(d *deployment) error{
		"Emit": func(d *deployment) error {
			_, err := d.queue.Emit(d.t.Context(), d.event(""))
			return err
		},
		"InTx": func(d *deployment) error {
			return d.queue.InTx(d.t.Context(), func(ctx context.Context, tx *eventqueue.Tx) error {
				_, err := tx.Emit(ctx, d.event(""))
				return err
			})
		},
		"EmitTx and Notify": func(d *deployment) error { return d.emitTx(true) },
		"EmitTx":            func(d *deployment) error { return d.emitTx(false) },
		"with a key": func(d *deployment) error {
			_, err := d.queue.Emit(d.t.Context(), d.event("key"))
			return err
		},
	}
	for name, emit := range ways {
		for program, view := range map[string]func(d *deployment) *failsOnce{
			"the emitter's": func(d *deployment) *failsOnce { return d.emitter },
			"the worker's":  func(d *deployment) *failsOnce { return d.worker },
			"the relay's":   func(d *deployment) *failsOnce { return d.relay },
		} {
			t.Run(name+"/"+program, func(t *testing.T) {
				t.Parallel()
				deploy(t, func(d *deployment) {
					time.Sleep(time.Second)
					emitSome := func(n int) {
						for range n {
							if err := emit(d); err != nil {
								t.Error(err)
							}
							time.Sleep(100 * time.Millisecond)
						}
					}
					emitSome(20)
					view(d).fail.Store(true)
					emitSome(20)
					time.Sleep(12 * time.Second) // until the failure no longer counts, and silence is suspected
					emitSome(5)
					time.Sleep(3 * time.Second)
					d.check(45)
				})
			})
		}
	}
}

func (d *deployment) emitTx(notify bool) error {
	ctx := d.t.Context()
	tx, err := d.store.Pool().Begin(ctx)
	if err != nil {
		return err
	}
	pending, err := d.queue.EmitTx(ctx, tx, d.event(""))
	if err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil || !notify {
		return err
	}
	return pending.Notify(ctx)
}

// TestOneFailedPublishOfAWorkerStopsNoGroup: the first notification that a worker publishes
// for a group that has advanced is refused. The many later ones are not left to a relay.
func TestOneFailedPublishOfAWorkerStopsNoGroup(t *testing.T) {
	t.Parallel()
	deploy(t, func(d *deployment) {
		time.Sleep(time.Second)
		d.worker.fail.Store(true)
		var events []eventqueue.NewEvent
		for i := range 1000 {
			events = append(events, d.event(fmt.Sprint("line ", i%100)))
		}
		if _, err := d.queue.EmitMany(d.t.Context(), events); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		d.check(1000)
	})
}

// TestOneFailedPublishDelaysNoLiftedRule has a program fail once that lifts rules and
// does nothing else. It goes on publishing.
func TestOneFailedPublishDelaysNoLiftedRule(t *testing.T) {
	t.Parallel()
	deploy(t, func(d *deployment) {
		time.Sleep(time.Second)
		lifter := &failsOnce{Notifier: d.emitter.Notifier}
		rules, err := operate.NewRules(d.store, d.newQueue(lifter))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if _, err := rules.Add(d.t.Context(), operate.PauseRule, rig.Scope); err != nil {
				t.Error(err)
			}
			if _, err := d.queue.Emit(d.t.Context(), d.event("")); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
			lifter.fail.Store(i == 2)
			if _, _, err := rules.Lift(d.t.Context(), operate.PauseRule, rig.Scope); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
			if d.mu.Lock(); len(d.late) != i+1 {
				t.Errorf("%d events began 2 s after lift %d", len(d.late), i+1)
			}
			d.mu.Unlock()
		}
		if n := lifter.sent.Load(); n < 7 {
			t.Errorf("of 10 notifications %d were published", n)
		}
	})
}
