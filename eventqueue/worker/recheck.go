package worker

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// claimFailedDelay is the wait before the next try to claim an event whose row another transaction
// is writing.
const claimFailedDelay = time.Second

// leaveToRelay is a wait so long that the relay publishes the next notification: see answerTo.
const leaveToRelay = eventqueue.MaxRequeue + time.Second

// rechecks decides when events that could not be claimed are tried again.
type rechecks struct {
	part
	unknown *unknown
	copies  copies
}

// recheck returns the wait before the next try to claim an event. It is never 0 (no hot loop).
func (r *rechecks) recheck(label machine.Label, id eventqueue.EventID, facts *machine.Facts) time.Duration {
	switch label {
	case machine.DelayNotYet:
		return facts.Delay
	case machine.IsLocked:
		// The sum must not overflow: locked_at may have been set by hand.
		return min(facts.LockRemaining, leaveToRelay) + r.config.Jitter(claimFailedDelay)
	case machine.BreakerOpen:
		wait := facts.BreakerOpen + r.config.Jitter(claimFailedDelay)
		if r.copies.another(id, wait) {
			return leaveToRelay
		}
		return wait
	case machine.HandlerUnknown:
		return r.unknownDelay(id, facts)
	default:
		return claimFailedDelay + r.config.Jitter(claimFailedDelay)
	}
}
