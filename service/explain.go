package service

import (
	"context"
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
)

// explain finds out for the relay's log why an event that is due does not run.
func (s *Service) explain(ctx context.Context, id eventqueue.EventID) (maintenance.Explanation, error) {
	e, err := inspect.NewIn(s.config.Schema, s.pool).Explain(ctx, id)
	if err != nil {
		return maintenance.Explanation{}, fmt.Errorf("explain event %s: %w", id, err)
	}
	because := e.Because()
	explained := maintenance.Explanation{Why: because.Why, Remedy: because.Remedy}
	switch because.Label {
	case machine.HandlerUnknown, machine.BreakerOpen, machine.LockClaimFailed:
	case machine.Claimed:
		// Workers have a minute from its last notification; then the relay notifies it again.
		notified := e.Shown.Queued.NotifiedAt
		explained.Free = true
		explained.Passes = notified != nil && e.AsOf.Sub(*notified) < maintenance.UnservedAfter
	default: // since it was found it has ended, begun, or a rule or a delay holds it back
		explained.Passes = true
	}
	return explained, nil
}
