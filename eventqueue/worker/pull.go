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
	// pulledAll reports whether a pull brought as many notifications as were asked for.
	pulledAll *atomic.Bool
}

// receive pulls notifications for free slots and has their events claimed, until ctx ends. Two of
// these run at once.
func (p *puller) receive(ctx, work context.Context) {
	wait := backoff.New(p.config.Jitter)
	loop := p.rounds.Loop("loop that pulls notifications and claims events")
	defer loop.Ends()
	for {
		loop.Waits() // for a slot, and for a notification
		n, err := p.releaser.slots.take(ctx, p.config.ClaimBatch)
		if err != nil {
			return
		}
		began := time.Now()
		pulled, err := p.receiver.Pull(ctx, n)
		loop.Within(p.config.LockTimeout/2 + 2*backoff.Most) // of a claim, and of the wait after it has failed
		deliveries := received(pulled)
		p.releaser.slots.give(n - len(deliveries))
		switch {
		case ctx.Err() != nil:
			p.releaser.giveBack(deliveries, 0)
			return
		case len(deliveries) > 0:
			if len(deliveries) == n {
				p.pulledAll.Store(true)
			}
			p.decider.claimOrWait(ctx, work, deliveries, wait)
		case err != nil:
			p.log.Warn("could not pull notifications", zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
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
