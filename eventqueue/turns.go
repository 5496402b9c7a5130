package eventqueue

import (
	"context"

	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
)

// takeTurns deals with those of a batch that could not be claimed because of
// their lines. What waits takes its place; what has a turn and cannot use it, as
// when its handler is paused, gives it back. It returns what is left to decide:
// events of the batch whose turn it has become are looked at once more instead,
// and others are handed over.
func (w *Worker) takeTurns(ctx, work context.Context, rest []lookedAt) []lookedAt {
	var left, arrived []EventID
	for _, l := range rest {
		switch _, label := machine.Look(l.found.Facts); {
		case label == machine.NotItsTurn:
			arrived = append(arrived, l.found.Event.ID)
		case l.found.InLine && keepsFromRunning(label):
			left = append(left, l.found.Event.ID)
		}
	}
	if len(left)+len(arrived) == 0 {
		return rest
	}
	turns, err := w.store.TakeTurns(ctx, left, arrived, w.config.LockTimeout)
	if err != nil {
		w.log.Warn("could not take places in lines; the events are looked at again", zap.Int(logCount, len(left)+len(arrived)), zap.Error(err))
		for _, l := range rest {
			l.found.Facts.Waits = false // LockClaimFailed, which has the event looked at again
		}
		return rest
	}
	return w.useTurns(ctx, work, rest, turns)
}

// keepsFromRunning tells whether an event was not claimed for a reason of its own,
// which may last, and not because it runs.
func keepsFromRunning(label machine.Label) bool {
	switch label {
	case machine.Paused, machine.Blocked, machine.DelayNotYet, machine.HandlerUnknown:
		return true
	default:
		return false
	}
}

// useTurns claims the events of the batch whose turn it has become, and hands the
// others over.
func (w *Worker) useTurns(ctx, work context.Context, rest []lookedAt, turns []Event) []lookedAt {
	mine := make(map[EventID]bool, len(turns))
	for i := range turns {
		mine[turns[i].ID] = true
	}
	var again []Delivery
	left := rest[:0]
	for _, l := range rest {
		if mine[l.delivery.Event] {
			delete(mine, l.delivery.Event)
			l.delivery.unheard = !l.delivery.rung() // what rang for it is answered, it was not its turn
			again = append(again, l.delivery)
			continue
		}
		left = append(left, l)
	}
	for i := range turns {
		if mine[turns[i].ID] {
			w.turns.put(turns[i])
		}
	}
	if len(again) == 0 {
		return left
	}
	if err := w.look(ctx, work, again); err != nil {
		w.log.Warn("could not claim events whose turn it is; they are looked at again", zap.Int(logCount, len(again)), zap.Error(err))
		for _, d := range again {
			w.letGo(d, answer{delivery: d, requeue: true, after: claimFailedDelay})
		}
	}
	return left
}

// handOver has events whose turn it has become tried at once, until ctx ends: by
// this worker as far as it has the handlers and spare slots, without a
// notification; for the others the bell is rung.
func (w *Worker) handOver(ctx, work context.Context) {
	for ctx.Err() == nil && w.turns.wait(nil, ctx.Done()) {
		turns := w.turns.takeNow(nil, w.config.ClaimBatch)
		var own, others []Event
		for i := range turns {
			if _, known := w.handlers.find(&turns[i]); known {
				own = append(own, turns[i])
			} else {
				others = append(others, turns[i])
			}
		}
		n := w.spare.takeSpare(len(own), w.keepSpare)
		w.ring(ctx, append(others, own[n:]...))
		if n == 0 {
			continue
		}
		deliveries := make([]Delivery, n)
		for i := range deliveries {
			deliveries[i] = unrung(&own[i])
			deliveries[i].unheard = true
		}
		if err := w.look(ctx, work, deliveries); err != nil {
			w.log.Warn("could not claim events whose turn it is; the bell is rung for them", zap.Int(logCount, n), zap.Error(err))
			w.spare.give(n)
			w.ring(ctx, own[:n])
		}
	}
}

// ring publishes notifications of events whose turn it has become. What cannot be
// published is owed.
func (w *Worker) ring(ctx context.Context, turns []Event) {
	w.queue.publisher.publish(ctx, notificationsOf(turns))
}

func notificationsOf(events []Event) []Notification {
	notifications := make([]Notification, len(events))
	for i := range events {
		notifications[i] = Notification{Event: events[i].ID, Canvas: events[i].Canvas}
	}
	return notifications
}

// ringRest rings for the turns that came when the worker had begun to stop.
func (w *Worker) ringRest(ctx context.Context) {
	for turns := w.turns.takeNow(nil, MaxPublish); len(turns) > 0; turns = w.turns.takeNow(nil, MaxPublish) {
		w.ring(ctx, turns)
	}
}
