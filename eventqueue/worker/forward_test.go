package worker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// fleet is what the workers on one store know of each other.
type fleet struct {
	*shelf

	mu        sync.Mutex
	workers   []worker.Peer
	try       map[eventqueue.WorkerNumber]func([]eventqueue.EventID)
	asked     int
	forwarded int
	loses     bool // what is forwarded
}

// Peers implements worker.Peers.
func (f *fleet) Peers(context.Context) ([]worker.Peer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return slices.Clone(f.workers), nil
}

// Forward implements worker.Peers.
func (f *fleet) Forward(_ context.Context, to eventqueue.WorkerNumber, ids []eventqueue.EventID) error {
	f.mu.Lock()
	f.forwarded += len(ids)
	try, loses := f.try[to], f.loses
	f.mu.Unlock()
	if !loses {
		try(ids)
	}
	return nil
}

// Reserve implements worker.Standby.
func (f *fleet) Reserve(self worker.Registration, _ *zap.Logger) worker.Reserve {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers = append(f.workers, worker.Peer{Number: self.Number, Handlers: self.Handlers})
	return &member{shelf: f.shelf, fleet: f, self: self}
}

// member is the connection of a worker.
type member struct {
	*shelf
	fleet *fleet
	self  worker.Registration
}

// OnForwarded has what others forward tried.
func (m *member) OnForwarded(try func([]eventqueue.EventID)) {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	m.fleet.try[m.self.Number] = try
}

func (*member) Behind(eventqueue.RemoteReceiver, *zap.Logger) (eventqueue.Receiver, error) {
	panic("the lottery is no remote receiver")
}

func (*member) Hold(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
func (*member) Failure() error                 { return nil }
func (*member) Close()                         {}

// Hand implements what a worker needs of its receiver to get what others forward.
func (s side) Hand(_ context.Context, notifications []eventqueue.Notification) {
	for _, n := range notifications {
		s.workers[s.worker] <- []eventqueue.Delivery{{Notification: n, AckID: "forwarded"}}
	}
}

// of20 plays 20 workers of which the first so many have the handler, emits events for it, and returns for how
// long each has waited.
func of20(t *testing.T, f *fleet, know, events int) []time.Duration {
	t.Helper()
	l := newLottery(20)
	l.takes = 20 * time.Millisecond
	f.shelf, f.try = &shelf{}, map[eventqueue.WorkerNumber]func([]eventqueue.EventID){}
	var mu sync.Mutex
	var waits []time.Duration
	knows := eventqueue.NewHandlers()
	if err := knows.Register(rig.Key, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, time.Since(run.EnqueuedAt))
		return nil
	}), eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	handlers := slices.Repeat([]*eventqueue.Handlers{eventqueue.NewHandlers()}, 20)
	for i := range know {
		handlers[i] = knows
	}
	queue, stop := l.playOn(t, f, handlers...)
	synctest.Wait()
	for range events {
		if _, err := queue.Emit(t.Context(), rig.Event(`1`)); err != nil {
			t.Fatal(err)
		}
		rig.Pass(10 * time.Millisecond)
	}
	rig.Pass(2 * time.Minute)
	stop()
	slices.Sort(waits)
	return waits
}

// TestEventOfOneWorkerInTwentyStartsSoon (I13): who does not know its handler tells a worker that does.
func TestEventOfOneWorkerInTwentyStartsSoon(t *testing.T) {
	t.Parallel()
	for _, know := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const events = 1000
			waits := of20(t, &fleet{}, know, events)
			if len(waits) != events {
				t.Fatalf("%d runs of %d events", len(waits), events)
			}
			if p99 := waits[events*99/100]; p99 >= time.Second {
				t.Errorf("with %d of 20 workers one event in a hundred starts after %s or later, want 1 s", know, p99)
			}
		})
	}
}

// TestLostForwardedEventIsNotifiedAgain: a forwarded event is a hint, and its notification stays.
func TestLostForwardedEventIsNotifiedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events = 100
		// By chance, one of some thousands reaches none of the claims of the worker that knows it: the relay would notify it, which is not here.
		if waits := of20(t, &fleet{loses: true}, 1, events); len(waits) < events-3 || len(waits) > events {
			t.Errorf("%d runs of %d events", len(waits), events)
		}
	})
}

// TestNobodyAsksForOtherWorkersWhereAllHaveAllHandlers, nor forwards where nobody has a handler.
func TestNobodyAsksForOtherWorkersWhereAllHaveAllHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{}
		of20(t, f, 20, 100)
		if f.asked != 0 || f.forwarded != 0 {
			t.Errorf("the workers asked %d times for each other, and forwarded %d events", f.asked, f.forwarded)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{}
		of20(t, f, 0, 100)
		if most := 20 * 26; f.forwarded != 0 || f.asked > most { // every five seconds of two minutes
			t.Errorf("%d events that nobody knows were forwarded, and the workers asked %d times for each other; want none, and %d times at most", f.forwarded, f.asked, most)
		}
	})
}
