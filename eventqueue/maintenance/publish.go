package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/refusal"
)

// restAfterRefusal is about how long the relay rests when the notifier refuses.
const restAfterRefusal = time.Second

// errNotPublished ends a pass whose notifications the notifier refused.
var errNotPublished = errors.New("publish notifications")

// portionsPerSecond is how many requests a second the notifications are divided into at least, as
// long as they are published at the configured rate.
const portionsPerSecond = 10

// portion is how many notifications are taken and published at once: so few that none waits for long
// behind them (I20).
func (r *Relay) portion() int {
	return max(1, min(r.config.PerSecond/portionsPerSecond, eventqueue.MaxPublish))
}

// publish sends notifications that are marked as published, at the configured rate, and returns how
// many. Those that cannot be sent become pending again.
func (r *Relay) publish(ctx context.Context, notifications []eventqueue.Notification) (published int, err error) {
	for batch := range slices.Chunk(notifications, r.portion()) {
		if err := r.limiter.WaitN(ctx, len(batch)); err != nil {
			r.markPending(ctx, notifications[published:])
			return published, err
		}
		if err := r.send(ctx, batch, notifications[published+len(batch):]); err != nil {
			return published, err
		}
		published += len(batch)
	}
	return published, nil
}

// publishOrLeave sends notifications that are marked as published, in an order in which no canvas
// waits for all of another's, as long as the rate allows, and returns how many. It leaves the others
// pending, which are published canvas by canvas: so a search for what is lost waits for nothing, and
// finds the events of other canvases meanwhile (I20).
func (r *Relay) publishOrLeave(ctx context.Context, notifications []eventqueue.Notification) (published int, err error) {
	notifications = Interleaved(notifications)
	for batch := range slices.Chunk(notifications, r.portion()) {
		if err := ctx.Err(); err != nil {
			r.markPending(ctx, notifications[published:])
			return published, err
		}
		if !r.limiter.AllowN(time.Now(), len(batch)) {
			return published, r.leavePending(ctx, notifications[published:])
		}
		if err := r.send(ctx, batch, notifications[published+len(batch):]); err != nil {
			return published, err
		}
		published += len(batch)
	}
	return published, nil
}

// send publishes a batch. If that fails, the batch becomes pending again, and so do the rest.
func (r *Relay) send(ctx context.Context, batch, rest []eventqueue.Notification) error {
	sending, cancel := outlive(ctx, publishAtStop)
	defer cancel()
	marking, cancel := outlive(ctx, publishAtStop+markAtStop) // from the same moment
	defer cancel()
	if err := r.publisher.Send(sending, batch); err != nil {
		r.publisher.MarkPending(marking, slices.Concat(batch, rest))
		return fmt.Errorf("%w: %w", errNotPublished, err)
	}
	return nil
}

// leavePending makes notifications pending that the rate does not allow yet, and has the loop that
// publishes pending ones begin.
func (r *Relay) leavePending(ctx context.Context, notifications []eventqueue.Notification) error {
	ids := make([]eventqueue.EventID, len(notifications))
	for i, n := range notifications {
		ids[i] = n.Event
	}
	ctx, stop := outlive(ctx, markAtStop)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	if err := refusal.Report(r.log, r.store.LeavePending(ctx, ids)); err != nil {
		return fmt.Errorf("leave %d lost notifications pending; they are found again by their age: %w", len(ids), err)
	}
	r.wake()
	return nil
}

// reportLost reports to workers that notifications were lost: their notifier may accept everything,
// deliver nothing, and report no error.
func (r *Relay) reportLost(ctx context.Context, lost []eventqueue.Notification) error {
	reporter, ok := r.store.(LostReporter)
	if !ok || len(lost) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	if err := reporter.ReportLost(ctx); err != nil {
		return fmt.Errorf("report lost notifications to workers: %w", err)
	}
	return nil
}

// markPending makes notifications pending again.
func (r *Relay) markPending(ctx context.Context, notifications []eventqueue.Notification) {
	ctx, cancel := outlive(ctx, markAtStop)
	defer cancel()
	r.publisher.MarkPending(ctx, notifications)
}
