package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
)

// How many goroutines emit, and how long one call may take.
const (
	emitterCount = 8
	emitTimeout  = 5 * time.Second
)

// emitters emit at a steady rate through the library.
type emitters struct {
	queue    *eventqueue.Queue
	ledger   *ledger
	canvases []eventqueue.CanvasID
	limit    *rate.Limiter
}

func newEmitters(queue *eventqueue.Queue, l *ledger, canvases []eventqueue.CanvasID, perSecond int) *emitters {
	return &emitters{queue: queue, ledger: l, canvases: canvases, limit: rate.NewLimiter(rate.Limit(perSecond), max(perSecond/10, maxPerCall))}
}

// run emits until ctx ends and has then ended its last calls.
func (e *emitters) run(ctx context.Context) {
	var emitting sync.WaitGroup
	for range emitterCount {
		emitting.Go(func() {
			for {
				count := 1
				if rand.IntN(20) == 0 {
					count = maxPerCall
				}
				if e.limit.WaitN(ctx, count) != nil {
					return
				}
				// Not ctx: the end of the load is no reason for an unknown outcome.
				if e.emit(context.WithoutCancel(ctx), count) != nil {
					backoff.Sleep(ctx, 100*time.Millisecond) // an outage must not become a hot loop
				}
			}
		})
	}
	emitting.Wait()
}

// maxPerCall is how many events one call emits at most.
const maxPerCall = 5

// emit emits some events in one of three ways: a single one, several, or within a
// transaction. It records the outcome.
func (e *emitters) emit(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, emitTimeout)
	defer cancel()
	first := e.ledger.issue(count)
	events := make([]eventqueue.NewEvent, count)
	for i := range events {
		events[i] = e.draw(first + int64(i))
	}
	var err error
	switch {
	case count == 1:
		_, err = e.queue.Emit(ctx, events[0])
	case rand.IntN(2) == 0:
		_, err = e.queue.EmitMany(ctx, events)
	default:
		err = e.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			_, err := tx.Emit(ctx, events...)
			return err
		})
	}
	e.ledger.emitted(first, count, err)
	return err
}

// draw draws the handler of an event. Of 100 events 74 just run, 15 are delayed,
// 5 fail once, 5 are for the paused handler, and 1 takes long.
func (e *emitters) draw(serial int64) eventqueue.NewEvent {
	event := eventqueue.NewEvent{Canvas: e.canvases[rand.IntN(len(e.canvases))], Module: module, Name: handlerPlain,
		Modifier: modifier, Value: valueOf(serial)}
	switch n := rand.IntN(100); {
	case n < 15:
		event.Name = handlerDelayed
		event.Delay = time.Second + rand.N(4*time.Second)
	case n < 20:
		event.Name = handlerFlaky
	case n < 25:
		event.Name = handlerHeld
	case n < 26:
		event.Name = handlerSlow
	}
	return event
}
