package pgstore_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

func inspectScope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: eventqueue.CanvasID{1, 15: 1}, Module: "WORKER", Name: "greet"}
}

// emitInspected puts n events of inspectScope into a store.
func emitInspected(t *testing.T, store *pgstore.Store, n int) []eventqueue.EventID {
	t.Helper()
	scope := inspectScope()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, Modifier: "_", Value: []byte(`1`)}
	}
	inserted, err := store.Insert(testenv.Context(t), nil, events, eventqueue.AnnounceLater)
	if err != nil {
		t.Fatal(err)
	}
	var ids []eventqueue.EventID
	for _, row := range inserted {
		ids = append(ids, row.ID)
	}
	return ids
}

// failInspected ends events as failed.
func failInspected(t *testing.T, store *pgstore.Store, ids []eventqueue.EventID) {
	t.Helper()
	ctx := testenv.Context(t)
	known := eventqueue.Known{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "greet", Modifier: "_"}}}
	found, err := store.Claim(ctx, ids, known, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var ends []eventqueue.End
	for _, f := range found {
		ends = append(ends, eventqueue.End{Claim: eventqueue.Claim{Event: f.Event.ID, Attempt: f.Attempt}, Label: machine.FailedForGood, LastError: "no luck"})
	}
	if done, err := store.Finish(ctx, nil, ends, false); err != nil || len(done.Done) != len(ids) {
		t.Fatalf("%d of %d events failed, %v", len(done.Done), len(ids), err)
	}
}

// A page never shows an event twice and never leaves one out.
func TestListEventsByPages(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	want := emitInspected(t, store, 25)
	var got []eventqueue.EventID
	after := eventqueue.EventID(0)
	for {
		page, err := store.ListEvents(ctx, pgstore.HandlerFilterOf(inspectScope()), pgstore.EventWaiting, after, 10, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			got = append(got, e.ID)
			after = e.ID
		}
		if len(page) < 10 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages show %v, want %v", got, want)
	}
}

// The states of an event follow what happens to it.
func TestShowFollowsAnEvent(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emitInspected(t, store, 1)
	state := func(lockTimeout time.Duration) pgstore.EventState {
		t.Helper()
		shown, err := store.Show(ctx, ids[0], lockTimeout)
		if err != nil {
			t.Fatal(err)
		}
		if shown.Queued == nil {
			return pgstore.EventState(shown.Logged.Status)
		}
		return shown.Queued.State
	}
	expect := func(lockTimeout time.Duration, want pgstore.EventState) {
		t.Helper()
		if got := state(lockTimeout); got != want {
			t.Errorf("the state is %s, want %s", got, want)
		}
	}
	expect(time.Minute, pgstore.EventWaiting)
	if _, err := store.AddRule(ctx, eventqueue.PauseRule, inspectScope()); err != nil {
		t.Fatal(err)
	}
	expect(time.Minute, pgstore.EventPaused)
	if _, err := store.LiftRule(ctx, eventqueue.PauseRule, inspectScope()); err != nil {
		t.Fatal(err)
	}
	known := eventqueue.Known{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "greet", Modifier: "_"}}}
	found, err := store.Claim(ctx, ids, known, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	expect(time.Minute, pgstore.EventRunning)
	expect(0, pgstore.EventExpired)
	end := eventqueue.End{Claim: eventqueue.Claim{Event: ids[0], Attempt: found[0].Attempt}, Label: machine.FailedForGood, LastError: "no luck"}
	if _, err := store.Finish(ctx, nil, []eventqueue.End{end}, false); err != nil {
		t.Fatal(err)
	}
	expect(time.Minute, "FAILED")
}

// I5, I14: of any number of retries at once one moves the event, and no token of
// the claims before it is good for a write after it.
func TestRetryAtOnceMovesOnce(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emitInspected(t, store, 50)
	failInspected(t, store, ids)
	var mu sync.Mutex
	results := map[pgstore.RetryResult]int{}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			asked := slices.Clone(ids)
			if i%2 == 0 {
				slices.Reverse(asked)
			}
			retried, err := store.Retry(ctx, asked)
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
	if results[pgstore.RetryMoved] != 50 || results[pgstore.RetryQueued] != 350 {
		t.Errorf("the results are %v, want 50 moved and 350 queued", results)
	}
	stale := eventqueue.End{Claim: eventqueue.Claim{Event: ids[0], Attempt: 1}, Label: machine.ExecutesToCompletion}
	if done, err := store.Finish(ctx, nil, []eventqueue.End{stale}, false); err != nil || len(done.Done) != 0 {
		t.Errorf("a claim from before the retry has ended the event: %v, %v", done, err)
	}
	known := eventqueue.Known{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "greet", Modifier: "_"}}}
	found, err := store.Claim(ctx, ids[:1], known, time.Minute)
	if err != nil || !found[0].Facts.Claimed || found[0].Attempt != 2 || found[0].Event.Retries != 0 {
		t.Errorf("the claim after the retry found %+v, %v", found, err)
	}
}

// An event that fails again after its retry has an entry in event_log again.
func TestRetryMayBeRepeatedAfterAnotherFailure(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emitInspected(t, store, 1)
	for range 3 {
		failInspected(t, store, ids)
		results, err := store.Retry(ctx, ids)
		if err != nil || len(results) != 1 || results[0].Result != pgstore.RetryMoved {
			t.Fatalf("retry: %v, %v", results, err)
		}
	}
}

func TestHasEventsAndWakeRelay(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	has, err := store.HasEvents(ctx, inspectScope())
	if err != nil || has {
		t.Errorf("an empty queue has events: %t, %v", has, err)
	}
	emitInspected(t, store, 1)
	if has, err = store.HasEvents(ctx, inspectScope()); err != nil || !has {
		t.Errorf("a queue with an event has none: %t, %v", has, err)
	}
	if err := store.WakeRelay(ctx); err != nil {
		t.Error(err)
	}
}
