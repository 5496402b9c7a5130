package pgstore_test

import (
	"slices"
	"sync"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

func retriedScope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: eventqueue.CanvasID{1, 15: 1}, Module: "WORKER", Name: "greet"}
}

// emitRetried puts n events of retriedScope into a store.
func emitRetried(t *testing.T, store *pgstore.Store, n int) []eventqueue.EventID {
	t.Helper()
	scope := retriedScope()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, Modifier: "_", Value: []byte(`1`)}
	}
	inserted, err := store.Insert(testenv.Context(t), nil, events, eventqueue.NotifyModeLater)
	if err != nil {
		t.Fatal(err)
	}
	var ids []eventqueue.EventID
	for _, row := range inserted {
		ids = append(ids, row.ID)
	}
	return ids
}

// failRetried ends events as failed.
func failRetried(t *testing.T, store *pgstore.Store, ids []eventqueue.EventID) {
	t.Helper()
	ctx := testenv.Context(t)
	known := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "greet", Modifier: "_"}}}
	found, err := store.Claim(ctx, ids, known, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends []worker.Completion
	for _, f := range found {
		ends = append(ends, worker.Completion{Claim: worker.Claim{Event: f.Event.ID, Attempt: f.Attempt}, Label: machine.FailedForGood, LastError: "no luck"})
	}
	if done, err := store.Complete(ctx, nil, ends, false); err != nil || len(done.Done) != len(ids) {
		t.Fatalf("%d of %d events failed, %v", len(done.Done), len(ids), err)
	}
}

// I5, I14: of any number of retries at once one moves the event, and no token of
// the claims before it is good for a write after it.
func TestConcurrentRetriesMoveAnEventOnce(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emitRetried(t, store, 50)
	failRetried(t, store, ids)
	var mu sync.Mutex
	results := map[operate.ChangeResult]int{}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			asked := slices.Clone(ids)
			if i%2 == 0 {
				slices.Reverse(asked)
			}
			retried, err := store.Retry(ctx, operate.Edit{}, asked)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, r := range retried {
				results[r.Result]++
			}
		})
	}
	group.Wait()
	if results[operate.RetryMoved] != 50 || results[operate.RetryQueued] != 350 {
		t.Errorf("the results are %v, want 50 moved and 350 queued", results)
	}
	stale := worker.Completion{Claim: worker.Claim{Event: ids[0], Attempt: 1}, Label: machine.ExecutesToCompletion}
	if done, err := store.Complete(ctx, nil, []worker.Completion{stale}, false); err != nil || len(done.Done) != 0 {
		t.Errorf("a claim from before the retry has ended the event: %v, %v", done, err)
	}
	known := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "greet", Modifier: "_"}}}
	found, err := store.Claim(ctx, ids[:1], known, 0)
	if err != nil || !found[0].Facts.Claimed || found[0].Attempt != 2 || found[0].Event.Retries != 0 {
		t.Errorf("the claim after the retry found %+v, %v", found, err)
	}
}

// An event that fails again after its retry has an entry in event_log again.
func TestRetryMayBeRepeatedAfterAnotherFailure(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emitRetried(t, store, 1)
	for range 3 {
		failRetried(t, store, ids)
		results, err := store.Retry(ctx, operate.Edit{}, ids)
		if err != nil || len(results) != 1 || results[0].Result != operate.RetryMoved {
			t.Fatalf("retry: %v, %v", results, err)
		}
	}
}
