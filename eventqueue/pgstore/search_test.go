package pgstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// deaf is a notifier that delivers nothing, though what is published to it is accepted.
type deaf struct{ well }

func (*deaf) Check(context.Context) error { return errors.New("no answer") }
func (*deaf) Pull(context.Context, int) ([]eventqueue.Delivery, error) {
	return nil, errors.New("no answer")
}

// TestSearchFindsEventsOfItsHandlers (I13, I19): while notifications are lost, a worker that has no handler
// for an event leaves it for one that has, as if it had not seen it, with and without ordering keys.
func TestSearchFindsEventsOfItsHandlers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	grouped := event()
	grouped.OrderingKey = "key"
	ids := r.insert(event(), event(), event(), grouped)
	r.exec(`UPDATE events_v2 SET name = 'other' WHERE id = ANY ($1)`, []int64{int64(ids[1]), int64(ids[3])})
	r.exec(`UPDATE events_v2 SET name = 'another' WHERE id = $1`, ids[2])
	r.exec(`UPDATE events_v2 SET delay_until = delay_until - interval '1 h', enqueued_at = enqueued_at - interval '1 h', notified_at = notified_at - interval '1 h'`)
	other, another := key, key
	other.Name, another.Name = "other", "another"
	for i, c := range []struct {
		known eventqueue.HandlerSet
		want  []eventqueue.EventID
	}{
		{eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{other}}, []eventqueue.EventID{ids[1], ids[3]}},
		{eventqueue.HandlerSet{OnCanvas: []eventqueue.CanvasHandler{{Canvas: event().Canvas, Key: another}, {Canvas: eventqueue.CanvasID{9}, Key: key}}}, ids[2:3]},
		{eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{key}}, ids[:1]},
	} {
		if got := r.found(i, c.known, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("a worker with the handlers %v finds %v, want %v", c.known, got, c.want)
		}
	}
}

// found returns the events that a worker finds that begins while its notifier delivers nothing: so many events, and what
// comes with them.
func (r *rig) found(number int, known eventqueue.HandlerSet, n int) (ids []eventqueue.EventID) {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	reserve := r.store.Reserve(worker.Registration{Number: eventqueue.WorkerNumber(number + 1), Handlers: known}, zap.NewNop())
	defer reserve.Close()
	receiver, err := reserve.Behind(&deaf{}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	attending, end := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		_ = receiver.(interface{ Attend(context.Context) error }).Attend(attending) // it ends with its context
	}()
	defer func() { end(); <-ended }()
	for len(ids) < n {
		deliveries, err := receiver.Pull(ctx, 100)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, d := range deliveries {
			ids = append(ids, d.Event)
		}
	}
	slices.Sort(ids)
	return ids
}

// TestWorkerSearchPrecedesAFailingRelay (I13, I19): what a relay publishes again at its longest
// interval is lost to a worker before that is over, even if the relay waits for half as long as workers do.
func TestWorkerSearchPrecedesAFailingRelay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.insert(event())
	const relay, own = time.Hour, 2 * time.Hour
	r.exec(`UPDATE events_v2 SET delay_until = delay_until - interval '100 h', enqueued_at = enqueued_at - interval '100 h', notified_at = notified_at - interval '9 h'`)
	ctx := testenv.Context(t)
	if swept, err := r.store.Sweep(ctx, 0, 10, relay); err != nil || len(swept.Lost) > 0 {
		t.Fatalf("the relay's: %v, %v", swept.Lost, err)
	}
	lost, _, err := r.store.Searching(handlers).TakeLost(ctx, 0, 10, own)
	if err != nil || len(lost) != 1 || lost[0].Event != ids[0] {
		t.Errorf("the worker's: %v, %v", lost, err)
	}
}
