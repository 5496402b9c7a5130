package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// Begin claims an event that may run, as a worker with its handler would, and returns its run, for a caller that
// calls the handler by itself: a test, with package eventstest. CompleteTx and CompleteIn complete the event. Nothing
// renews the claim, no limit is asked, and what the handler returns has no effect on the event. config is the
// worker's, of which RetainHistory and SealResult count. The error says what keeps the event from running.
func Begin(ctx context.Context, queue *eventqueue.Queue, store Store, event eventqueue.EventID, handler eventqueue.HandlerKey, config Config) (*eventqueue.Run, error) {
	known := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{handler}}
	found, err := claimOne(ctx, store, event, known)
	if err != nil {
		return nil, fmt.Errorf("claim event %s: %w", event, err)
	}
	x := &execution{ctx: runContext{made: ctx}, executor: &executor{part: part{config: &config, store: store}, queue: queue},
		unique: found.Unique, grouped: found.Grouped, began: time.Now()}
	x.run = eventqueue.Run{Event: found.Event, Attempt: found.Attempt, ClaimID: found.ClaimID, Snoozes: found.Snoozes, Completer: x}
	if !found.ValueApart {
		return &x.run, nil
	}
	value, _, err := store.Value(ctx, x.claim())
	if err != nil {
		return nil, fmt.Errorf("read the value of event %s: %w", event, err)
	}
	x.run.Value = value
	return &x.run, nil
}

// claimOne claims one event. An event that has to join its ordering groups does that first.
func claimOne(ctx context.Context, store Store, event eventqueue.EventID, known eventqueue.HandlerSet) (*ClaimResult, error) {
	for joined := false; ; joined = true {
		results, err := store.Claim(ctx, []eventqueue.EventID{event}, known, newClaimID(newWorkerNumber()))
		if err != nil {
			return nil, err
		}
		if len(results) == 0 {
			return nil, errors.New("it is not in the queue")
		}
		if results[0].Facts.Claimed {
			return &results[0], nil
		}
		if _, label := machine.DecideClaim(results[0].Facts); joined || label != machine.NotItsTurn {
			return nil, fmt.Errorf("it may not run: %s", label)
		}
		if _, err := store.Advance(ctx, nil, []eventqueue.EventID{event}); err != nil {
			return nil, err
		}
	}
}
