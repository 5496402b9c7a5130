package worker

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
)

// advancer has events tried whose ordering groups have advanced to them.
type advancer struct {
	part
	queue    *eventqueue.Queue
	receiver eventqueue.Receiver
	handlers *eventqueue.Handlers
	releaser *releaser
	decider  *decider
	advanced *batcher[eventqueue.Event] // that may run now, for dispatchAdvanced
	// fairnessSlots of the reserved slots are for fairness alone.
	fairnessSlots int
}

// advance is for the events of a batch that could not be claimed because of their ordering groups.
// Events that have to wait join their groups. An event at the front that cannot run, because its
// handler is paused for example, leaves its place. Events that may run by that are claimed if they
// are in the batch, and dispatched otherwise. It returns the candidates that are left to decide.
func (a *advancer) advance(ctx, work context.Context, rest []candidate) []candidate {
	var left, arrived []eventqueue.EventID
	for _, l := range rest {
		switch _, label := machine.DecideClaim(l.result.Facts); {
		case label == machine.NotItsTurn:
			arrived = append(arrived, l.result.Event.ID)
		case l.result.Grouped && keepsFromRunning(label):
			left = append(left, l.result.Event.ID)
		}
	}
	if len(left)+len(arrived) == 0 {
		return rest
	}
	advanced, err := a.store.Advance(ctx, left, arrived)
	if err = refusal.Report(a.log, err); err != nil {
		a.log.Warn("could not join or leave ordering groups; their events are claimed again later", zap.Int(logkey.Count, len(left)+len(arrived)), zap.Error(err))
		for _, l := range rest {
			l.result.Facts.Waits = false // LockClaimFailed, which has the event tried again
		}
		return rest
	}
	return a.claimAdvanced(ctx, work, rest, advanced)
}

// keepsFromRunning reports whether an event was not claimed for a reason of its own, which may
// last, and not because it runs.
func keepsFromRunning(label machine.Label) bool {
	return label == machine.DelayNotYet || label == machine.HandlerUnknown || label == machine.BreakerOpen || machine.HoldsBack(label)
}

// claimAdvanced claims the advanced events that are in the batch, and has the others dispatched.
func (a *advancer) claimAdvanced(ctx, work context.Context, rest []candidate, advanced []eventqueue.Event) []candidate {
	mine := make(map[eventqueue.EventID]bool, len(advanced))
	for i := range advanced {
		mine[advanced[i].ID] = true
	}
	var again []delivery
	left := rest[:0]
	for _, l := range rest {
		if mine[l.delivery.Event] {
			delete(mine, l.delivery.Event)
			l.delivery.needsNotify = !l.delivery.notified() // an earlier notification may have been dropped, as it could not run
			again = append(again, l.delivery)
			continue
		}
		left = append(left, l)
	}
	others := slices.DeleteFunc(slices.Clone(advanced), func(e eventqueue.Event) bool { return !mine[e.ID] })
	if len(others) > 0 {
		a.advanced.put(others...)
	}
	if len(again) == 0 {
		return left
	}
	if err := a.decider.claim(ctx, work, again); err != nil {
		a.log.Warn("could not claim the next events of ordering groups; trying again", zap.Int(logkey.Count, len(again)), zap.Error(err))
		a.releaser.letGoAll(again, claimFailedDelay)
	}
	return left
}

// dispatchAdvanced has advanced events tried at once, until ctx ends: by this worker as far as it
// has the handlers and reserved slots, without a notification; for the others it publishes
// notifications.
func (a *advancer) dispatchAdvanced(ctx, work context.Context) {
	for ctx.Err() == nil && a.advanced.wait(nil, ctx.Done()) {
		advanced := a.advanced.takeNow(nil, a.config.ClaimBatch)
		var own, others []eventqueue.Event
		for i := range advanced {
			if _, known := a.handlers.Lookup(&advanced[i]); known {
				own = append(own, advanced[i])
			} else {
				others = append(others, advanced[i])
			}
		}
		n := a.releaser.reserved.tryTake(len(own), a.fairnessSlots)
		a.notify(ctx, own[n:], others)
		if n == 0 {
			continue
		}
		deliveries := make([]delivery, n)
		for i := range deliveries {
			deliveries[i] = unnotified(&own[i])
			deliveries[i].needsNotify = true
		}
		if err := a.decider.claim(ctx, work, deliveries); err != nil {
			a.log.Warn("could not claim the next events of ordering groups; notifications are published for them", zap.Int(logkey.Count, n), zap.Error(err))
			a.releaser.reserved.give(n)
			a.notify(ctx, own[:n], nil)
		}
	}
}

// selfDelivering is a Receiver that can deliver to its own worker while its notifier is
// down, as the fallback can.
type selfDelivering interface {
	Deliver(ctx context.Context, notifications []eventqueue.Notification) (delivered bool)
}

// notify has advanced events tried. When notifications cannot be pulled at the moment, this worker
// tries its own ones itself, since a published notification would not arrive for a while (I19). For
// all others notifications are published; those that cannot be published become pending.
func (a *advancer) notify(ctx context.Context, own, others []eventqueue.Event) {
	if d, able := a.receiver.(selfDelivering); able && len(own) > 0 && d.Deliver(ctx, notificationsOf(own)) {
		own = nil
	}
	if events := slices.Concat(others, own); len(events) > 0 {
		a.queue.NotifyEvents(ctx, events)
	}
}

func notificationsOf(events []eventqueue.Event) []eventqueue.Notification {
	notifications := make([]eventqueue.Notification, len(events))
	for i := range events {
		notifications[i] = events[i].Notification()
	}
	return notifications
}

// notifyRest has notifications published for events that advanced after the worker had begun to
// stop.
func (a *advancer) notifyRest() {
	for advanced := a.advanced.takeNow(nil, eventqueue.MaxPublish); len(advanced) > 0; advanced = a.advanced.takeNow(nil, eventqueue.MaxPublish) {
		rest := make([]answer, len(advanced))
		for i := range advanced {
			rest[i] = answer{delivery: unnotified(&advanced[i]), requeue: true}
		}
		a.releaser.answers.putIn(a.releaser.answers.notifies, rest...)
	}
}
