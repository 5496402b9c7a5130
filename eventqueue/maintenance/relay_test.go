package maintenance_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestRelayPublishesLostNotifications lets every notification get lost in every way
// that leaves notified_at set, and has the relay bring the events back.
func TestRelayPublishesLostNotifications(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	relay := r.Relay(maintenance.RelayConfig{})
	r.Notifier.Drop(3)
	r.Emit(r.Event(`"lost"`), r.Event(`"locked by the living"`), r.Event(`"locked by the dead"`))
	pass := func(want maintenance.Relayed) {
		t.Helper()
		if done, err := relay.Pass(ctx); err != nil || done != want {
			t.Errorf("the relay published %+v, %v; want %+v", done, err, want)
		}
	}
	pass(maintenance.Relayed{}) // too early to say

	r.Exec(`UPDATE events_v2 SET notified_at = clock_timestamp() - interval '61 s', enqueued_at = clock_timestamp() - interval '61 s',
		delay_until = clock_timestamp() - interval '61 s'`)
	r.Exec(`UPDATE events_v2 SET locked_at = clock_timestamp(), attempts = 1 WHERE value = '"locked by the living"'`)
	r.Exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '1 h', attempts = 1 WHERE value = '"locked by the dead"'`)
	pass(maintenance.Relayed{Lost: 2})
	pass(maintenance.Relayed{}) // published once, not again and again

	// The interval doubles: silent for 61 s again, but the last notification came
	// 100 s after the event was due.
	r.Exec(`UPDATE events_v2 SET locked_at = NULL, notified_at = clock_timestamp() - interval '61 s',
		enqueued_at = clock_timestamp() - interval '161 s', delay_until = clock_timestamp() - interval '161 s'`)
	pass(maintenance.Relayed{})
	// But it is bounded: an event that waited for a day is not left for a day.
	r.Exec(`UPDATE events_v2 SET notified_at = clock_timestamp() - interval '11 min',
		enqueued_at = clock_timestamp() - interval '1 day', delay_until = clock_timestamp() - interval '1 day'`)
	pass(maintenance.Relayed{Lost: 3})
}

func TestRelayLeavesPausedAndDelayedEventsAlone(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	far := r.Event(`"far"`)
	far.Delay = time.Hour
	r.Emit(r.Event(`"paused"`), far)
	if _, err := r.Rules().Add(ctx, operate.PauseRule, rig.Scope); err != nil {
		t.Fatal(err)
	}
	r.Exec(`UPDATE events_v2 SET notified_at = clock_timestamp() - interval '1 day' WHERE value = '"paused"'`)
	r.Notifier.Wipe()
	relay := r.Relay(maintenance.RelayConfig{})
	if done, err := relay.Pass(ctx); err != nil || done != (maintenance.Relayed{}) {
		t.Errorf("the relay published %+v, %v", done, err)
	}
	// What is far off is notified when it comes near.
	r.Exec(`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '50 s' WHERE value = '"far"'`)
	if done, err := relay.Pass(ctx); err != nil || done != (maintenance.Relayed{Pending: 1}) {
		t.Errorf("the relay published %+v, %v", done, err)
	}
}

// TestCommitWakesTheRelay has a relay whose own timer is minutes away.
func TestCommitWakesTheRelay(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	relay := r.Relay(maintenance.RelayConfig{Interval: 4 * time.Minute})
	var relaying sync.WaitGroup
	relaying.Go(func() {
		if err := relay.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); relaying.Wait() })
	testenv.Eventually(t, "the relay listens", func() bool {
		return rig.One[bool](r, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_listening' || '_channels%')`)
	})
	tx, err := r.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Queue.EmitTx(ctx, tx, r.Event(`1`)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
}

// TestManyRelaysPublishOnce runs eight relays on the same pending notifications.
func TestManyRelaysPublishOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	r.Notifier.Inject(memnotify.Faults{Publish: func() error { return errors.New("down") }})
	events := make([]eventqueue.NewEvent, 5000)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	r.Emit(events...)
	r.Notifier.Inject(memnotify.Faults{})
	relays := make([]*maintenance.Relay, 8)
	for i := range relays {
		relays[i] = r.Relay(maintenance.RelayConfig{})
	}
	var passing sync.WaitGroup
	for _, relay := range relays {
		passing.Go(func() {
			if _, err := relay.Pass(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	passing.Wait()
	// A page that another relay holds is skipped, so one more pass may be needed.
	if _, err := relays[0].Pass(ctx); err != nil {
		t.Fatal(err)
	}
	if n := r.Notified(); n != len(events) {
		t.Errorf("%d of %d events have a notification", n, len(events))
	}
}

// TestFailedPublishStaysPending: the notification, and reports an error.
func TestFailedPublishStaysPending(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Notifier.Inject(memnotify.Faults{Publish: func() error { return errors.New("down") }})
	r.Emit(r.Event(`1`), r.Event(`2`))
	if done, err := r.Relay(maintenance.RelayConfig{}).Pass(testenv.Context(t)); err == nil {
		t.Errorf("the relay says it published %+v", done)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 2 {
		t.Errorf("%d rows have a pending notification, want 2", n)
	}
}
