package eventqueue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/test/testenv"
)

// TestTheRelayFindsWhatSeemsLost lets every notification get lost in every way
// that leaves notified_at set, and has the relay bring the events back.
func TestTheRelayFindsWhatSeemsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	relay := r.relay(eventqueue.RelayConfig{})
	r.notifier.Drop(3)
	r.emit(r.event(`"lost"`), r.event(`"locked by the living"`), r.event(`"locked by the dead"`))
	pass := func(want eventqueue.Relayed) {
		t.Helper()
		if done, err := relay.Pass(ctx); err != nil || done != want {
			t.Errorf("the relay published %+v, %v; want %+v", done, err, want)
		}
	}
	pass(eventqueue.Relayed{}) // too early to say

	r.exec(`UPDATE events_v2 SET notified_at = clock_timestamp() - interval '61 s', enqueued_at = clock_timestamp() - interval '61 s',
		delay_until = clock_timestamp() - interval '61 s'`)
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp(), attempts = 1 WHERE value = '"locked by the living"'`)
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '1 h', attempts = 1 WHERE value = '"locked by the dead"'`)
	pass(eventqueue.Relayed{Lost: 2})
	pass(eventqueue.Relayed{}) // published once, not again and again

	// The interval doubles: silent for 61 s again, but the last notification came
	// 100 s after the event was due.
	r.exec(`UPDATE events_v2 SET locked_at = NULL, notified_at = clock_timestamp() - interval '61 s',
		enqueued_at = clock_timestamp() - interval '161 s', delay_until = clock_timestamp() - interval '161 s'`)
	pass(eventqueue.Relayed{})
	// But it is bounded: an event that waited for a day is not left for a day.
	r.exec(`UPDATE events_v2 SET notified_at = clock_timestamp() - interval '11 min',
		enqueued_at = clock_timestamp() - interval '1 day', delay_until = clock_timestamp() - interval '1 day'`)
	pass(eventqueue.Relayed{Lost: 3})
}

func TestTheRelayLeavesPausedAndFarOffEventsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	far := r.event(`"far"`)
	far.Delay = time.Hour
	r.emit(r.event(`"paused"`), far)
	if _, err := r.rules().Add(ctx, eventqueue.PauseRule, scope); err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE events_v2 SET notified_at = clock_timestamp() - interval '1 day' WHERE value = '"paused"'`)
	r.notifier.Wipe()
	relay := r.relay(eventqueue.RelayConfig{})
	if done, err := relay.Pass(ctx); err != nil || done != (eventqueue.Relayed{}) {
		t.Errorf("the relay published %+v, %v", done, err)
	}
	// What is far off is notified when it comes near.
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '50 s' WHERE value = '"far"'`)
	if done, err := relay.Pass(ctx); err != nil || done != (eventqueue.Relayed{Owed: 1}) {
		t.Errorf("the relay published %+v, %v", done, err)
	}
}

// TestACommitWakesTheRelay has a relay whose own timer is minutes away.
func TestACommitWakesTheRelay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	relay := r.relay(eventqueue.RelayConfig{Interval: 4 * time.Minute})
	var relaying sync.WaitGroup
	relaying.Go(func() {
		if err := relay.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); relaying.Wait() })
	testenv.Eventually(t, "the relay listens", func() bool {
		return one[bool](r, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%')`)
	})
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.queue.EmitTx(ctx, tx, r.event(`1`)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
}

// TestManyRelaysPublishOnce runs eight relays over the same debts.
func TestManyRelaysPublishOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	r.notifier.Inject(memnotify.Faults{Publish: func() error { return errors.New("down") }})
	events := make([]eventqueue.NewEvent, 5000)
	for i := range events {
		events[i] = r.event(`1`)
	}
	r.emit(events...)
	r.notifier.Inject(memnotify.Faults{})
	relays := make([]*eventqueue.Relay, 8)
	for i := range relays {
		relays[i] = r.relay(eventqueue.RelayConfig{})
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
	if n := r.notifier.Len(); n != len(events) {
		t.Errorf("%d notifications for %d events", n, len(events))
	}
}

// TestARelayThatCannotPublishKeepsTheDebt and tells nobody that it was paid.
func TestARelayThatCannotPublishKeepsTheDebt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.notifier.Inject(memnotify.Faults{Publish: func() error { return errors.New("down") }})
	r.emit(r.event(`1`), r.event(`2`))
	if done, err := r.relay(eventqueue.RelayConfig{}).Pass(testenv.Context(t)); err == nil {
		t.Errorf("the relay says it published %+v", done)
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 2 {
		t.Errorf("%d rows are owed a notification, want 2", n)
	}
}
