package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/test/testenv"
)

// queue makes a Queue that publishes to a notifier.
func (r *rig) queue(notifier *memnotify.Notifier) *eventqueue.Queue {
	r.t.Helper()
	q, err := eventqueue.New(r.store, notifier, eventqueue.QueueConfig{PublishRest: time.Hour})
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

// TestDelayIsNeverShortened (I6), not by a microsecond.
func TestDelayIsNeverShortened(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for delay, microseconds := range map[time.Duration]int{
		1: 1, 999 * time.Millisecond: 999_000, 1500*time.Millisecond + 1: 1_500_001,
	} {
		e := event()
		e.Delay = delay
		id := r.insert(e)[0]
		if got := one[int](r, `SELECT (extract(epoch FROM delay_until - enqueued_at) * 1000000)::bigint FROM events_v2 WHERE id = $1`, id); got != microseconds {
			t.Errorf("a delay of %s became %d µs, want %d", delay, got, microseconds)
		}
	}
}

// TestValueComesOutAsItWentIn (I8), byte for byte, through each way of inserting
// and the claim.
func TestValueComesOutAsItWentIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, value := range []string{`{"b": 1,  "a":1.0 }`, ` [1e400, "\u00fc ü" ] `, `"<&>\/"`} {
		atOnce, past, keyed := event(), event(), event()
		past.DelayUntil = time.Unix(1, 0)
		keyed.UniqueKey = value
		for _, e := range []eventqueue.NewEvent{atOnce, past, keyed} {
			e.Value = []byte(value)
			id := r.insert(e)[0]
			if got := string(r.look(id)[id].Event.Value); got != value {
				t.Errorf("%s came out as %s", value, got)
			}
		}
	}
}

// TestEachOfABatchGoesToItsHandler (I16): a batch of several canvases and handlers.
func TestEachOfABatchGoesToItsHandler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var events []eventqueue.NewEvent
	for i := range 30 {
		e := event()
		e.Canvas[3] = byte(i % 3)
		e.Module, e.Name, e.Modifier = fmt.Sprint("module", i/2%2), fmt.Sprint("name", i/4%2), fmt.Sprint("modifier", i%2)
		e.Value = fmt.Append(nil, i)
		events = append(events, e)
	}
	ids := r.insert(events...)
	for i, id := range ids {
		want := events[i]
		got := one[string](r, `SELECT concat_ws(' ', canvas_id, module, name, modifier, value) FROM events_v2 WHERE id = $1`, id)
		if want := fmt.Sprint(want.Canvas, " ", want.Module, " ", want.Name, " ", want.Modifier, " ", string(want.Value)); got != want {
			t.Errorf("event %d of the batch became %s, want %s", i, got, want)
		}
	}
}

// TestNothingIsNotifiedBeforeTheCommit (I1): the commit itself fails, or the unit of
// work does.
func TestNothingIsNotifiedBeforeTheCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	notifier := memnotify.New(memnotify.Config{})
	q := r.queue(notifier)
	boom := errors.New("boom")
	err := q.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.Emit(ctx, event())
		return errors.Join(err, boom)
	})
	if !errors.Is(err, boom) {
		t.Errorf("the unit of work returned %v", err)
	}
	r.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$`)
	r.exec(`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON events_v2 DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if err := q.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.Emit(ctx, event())
		return err
	}); err == nil {
		t.Error("the commit did not fail")
	}
	if n := notifier.Stats().Published; n != 0 {
		t.Errorf("%d notifications of events that were never there", n)
	}
}

// TestFailedPublishIsPending (I1, I2), and for a while nobody tries again.
func TestFailedPublishIsPending(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	notifier := memnotify.New(memnotify.Config{})
	tried := 0
	notifier.Inject(memnotify.Faults{Publish: func() error { tried++; return errors.New("down") }})
	q := r.queue(notifier)
	for range 3 {
		if _, err := q.Emit(testenv.Context(t), event()); err != nil {
			t.Fatal(err)
		}
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 3 {
		t.Errorf("%d notifications are pending, want 3", n)
	}
	if tried != 1 {
		t.Errorf("a notifier that is down was tried %d times in a row", tried)
	}
}
