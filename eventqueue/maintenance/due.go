package maintenance

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/lostanswer"
)

// dueTakes takes the pending notifications of due events. What a statement may have taken whose
// answer is lost, or does not come, is marked as pending again, which wakes the relay (I19).
type dueTakes struct {
	store  RelayStore
	within time.Duration
	lost   *lostanswer.Takes[eventqueue.EventID]
	wait   *lostanswer.Wait
}

// newDueTakes makes those of one goroutine, for events due within a time, which await an answer for the time
// first at first.
func newDueTakes(store RelayStore, lost *lostanswer.Takes[eventqueue.EventID], within, first time.Duration) *dueTakes {
	return &dueTakes{store: store, within: within, lost: lost, wait: lostanswer.NewWait(first, statementTakes)}
}

// closeTakes marks as pending, at once, what statements without an answer may have taken. A stop has one
// time for all that it does, from the end of ctx on: the function that closeTakes returns blocks no longer
// than to its end, whatever came before it.
func closeTakes(ctx context.Context, lost *lostanswer.Takes[eventqueue.EventID]) func() {
	closing, cancel := outlive(ctx, publishAtStop+markAtStop)
	return func() {
		defer cancel()
		_ = lost.Close(closing) // what is left is found by its age
	}
}

// take takes at most limit. What it returns beside a *refusal.Error was taken.
func (d *dueTakes) take(ctx context.Context, limit int) (due []eventqueue.Notification, err error) {
	err = d.wait.Do(ctx, func(ctx context.Context) (err error) {
		due, err = d.store.TakeDue(ctx, d.within, limit, d.lost.AwaitFailure)
		return err
	})
	return due, err
}
