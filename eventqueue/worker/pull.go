package worker

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
)

// A receiver without notifications answers after a while. One that answers at once, again and
// again, must not cause a hot loop.
const (
	emptyPullTakes = 50 * time.Millisecond
	emptyPullWait  = 100 * time.Millisecond
)

// puller pulls notifications.
type puller struct {
	part
	receiver eventqueue.Receiver
	releaser *releaser
	decider  *decider
	// pulledAll says that a pull brought as many notifications as were asked for.
	pulledAll *atomic.Bool
}

// receive pulls notifications for free slots and has their events claimed, until ctx ends. Two of
// these run at once.
func (w *puller) receive(ctx, work context.Context) {
	wait := backoff.New(w.config.Jitter)
	for {
		n, err := w.releaser.slots.take(ctx, w.config.ClaimBatch)
		if err != nil {
			return
		}
		began := time.Now()
		pulled, err := w.receiver.Pull(ctx, n)
		deliveries := received(pulled)
		w.releaser.slots.give(n - len(deliveries))
		switch {
		case ctx.Err() != nil:
			w.releaser.giveBack(deliveries, 0)
			return
		case len(deliveries) > 0:
			if len(deliveries) == n {
				w.pulledAll.Store(true)
			}
			w.decider.claimOrWait(ctx, work, deliveries, wait)
		case err != nil:
			w.log.Warn("could not pull notifications", zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
			wait.Pause(ctx)
		case time.Since(began) < emptyPullTakes:
			backoff.Sleep(ctx, emptyPullWait)
		default:
			wait.Reset()
		}
	}
}

func received(pulled []eventqueue.Delivery) []delivery {
	deliveries := make([]delivery, len(pulled))
	for i := range pulled {
		deliveries[i].Delivery = pulled[i]
	}
	return deliveries
}
