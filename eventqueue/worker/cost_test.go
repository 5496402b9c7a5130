package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// What a worker costs is counted in a bubble of synctest, in which a call of the store
// takes a millisecond and everything else no time at all: whatever can come together
// while a statement is under way has come together, on any machine and beside any load.
// That each of these calls is one statement is shown in package pgstore, and through
// the deployed worker in test/e2e.

// countedStore is a store that counts its calls.
type countedStore struct {
	*rig.FaultyStore
	mu    sync.Mutex
	calls map[rig.Op]int
}

func newCountedStore(store *pgstore.Store) *countedStore {
	c := &countedStore{FaultyStore: rig.Faulty(store, rig.Faults{}), calls: map[rig.Op]int{}}
	c.Inject(rig.Faults{Before: func(_ context.Context, op rig.Op) error {
		c.mu.Lock()
		c.calls[op]++
		c.mu.Unlock()
		time.Sleep(time.Millisecond)
		return nil
	}})
	return c
}

// taken returns the calls since it was last called.
func (c *countedStore) taken() (calls map[rig.Op]int, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls, c.calls = c.calls, map[rig.Op]int{}
	for _, n := range calls {
		all += n
	}
	return calls, all
}

// TestWorkerSendsTheDocumentedStatements drains a backlog of 10,000 events with the default settings, for
// 0.02 statements per event at most, and then has nothing to do for an hour, for none.
func TestWorkerSendsTheDocumentedStatements(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]func(eventqueue.EventID) time.Duration{
		"handlers that take no time":   func(eventqueue.EventID) time.Duration { return 0 },
		"handlers that end together":   func(eventqueue.EventID) time.Duration { return 30 * time.Millisecond },
		"handlers that end one by one": func(id eventqueue.EventID) time.Duration { return time.Duration(id%100) * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) { testCosts(t, r, takes) })
		})
	}
}

func testCosts(t *testing.T, r *rig.Rig, takes func(eventqueue.EventID) time.Duration) {
	const backlog = 10_000
	store, outcomes := newCountedStore(r.Store), r.Outcomes
	r.Handle(func(_ context.Context, run *eventqueue.Run) error { time.Sleep(takes(run.ID)); return nil }, rig.Quick())
	r.QueueOn(store, r.Notifier)
	r.Emit(r.Copies(backlog)...)
	store.taken()
	r.StartOn(store, worker.Config{})
	for began := time.Now(); outcomes.Count(machine.ExecutesToCompletion) < backlog; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Hour {
			t.Fatalf("%d of %d events have completed in an hour", outcomes.Count(machine.ExecutesToCompletion), backlog)
		}
	}
	calls, all := store.taken()
	t.Logf("%.4f statements per drained event: %v", float64(all)/backlog, calls)
	if all > backlog/50 {
		t.Errorf("%d statements for %d events, more than 0.02 per event: %v", all, backlog, calls)
	}

	time.Sleep(time.Minute) // for what comes once after work
	store.taken()
	time.Sleep(time.Hour)
	if calls, all := store.taken(); all > 0 {
		t.Errorf("an idle worker sends statements: %v", calls)
	}
}
