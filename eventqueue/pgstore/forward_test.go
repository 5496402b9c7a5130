package pgstore_test

import (
	"context"
	"slices"
	"testing"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// receive waits for what has to come.
func receive[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-testenv.Context(t).Done():
		t.Fatalf("%s does not come", what)
	}
	return got
}

// TestWorkerReceivesForwardedEvents, and nothing that is forwarded to others or makes no sense.
func TestWorkerReceivesForwardedEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	reserve := r.store.Reserve(registration(17), zap.NewNop())
	heard := make(chan []eventqueue.EventID, 10)
	reserve.(interface {
		OnForwarded(try func([]eventqueue.EventID))
	}).OnForwarded(func(ids []eventqueue.EventID) { heard <- ids })
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer reserve.Close()
	listens, ended := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(ended)
		_ = pgstore.Listen(ctx, reserve, func(bool) { listens <- struct{}{} }) // it ends with the test
	}()
	defer func() { cancel(); <-ended }()
	receive(t, "the worker listens", listens)

	peers, err := r.store.Peers(ctx)
	if err != nil || len(peers) != 1 || peers[0].Number != 17 || !peers[0].Handlers.Has(canvas, key) {
		t.Fatalf("the workers are %+v, and %v", peers, err)
	}
	for _, f := range []struct {
		to  eventqueue.WorkerNumber
		ids []eventqueue.EventID
	}{{18, []eventqueue.EventID{1}}, {17, []eventqueue.EventID{2, 3}}, {17, slices.Repeat([]eventqueue.EventID{1 << 62}, 300)}} {
		if err := r.store.Forward(ctx, f.to, f.ids); err != nil {
			t.Fatal(err)
		}
	}
	if ids := receive(t, "what was forwarded", heard); !slices.Equal(ids, []eventqueue.EventID{2, 3}) {
		t.Errorf("the worker hears of %v", ids)
	}
	if ids := receive(t, "what was forwarded last", heard); len(ids) != 300 {
		t.Errorf("the worker hears of %d events, want 300", len(ids))
	}
	r.exec(`SELECT pg_notify('events_v2_worker_17', 'try:x,-1,,9')`)
	if ids := receive(t, "what anybody may notify", heard); !slices.Equal(ids, []eventqueue.EventID{9}) {
		t.Errorf("the worker hears of %v", ids)
	}
	cancel()
	<-ended
	reserve.Close()
	if peers, err := r.store.Peers(testenv.Context(t)); err != nil || len(peers) != 0 {
		t.Errorf("when the worker has stopped, the workers are %+v, and %v", peers, err)
	}
}
