package worker

import (
	"context"
	"time"

	"eventsv2/eventqueue"
)

const (
	// maxCancelHints is how many events may wait to be asked about. Beyond it, the oldest are left to the next heartbeat.
	maxCancelHints = 10_000
	// askAgainAfter is when the worker asks once more about an event that it did not hold: the answer of its claim may have been under way.
	askAgainAfter = time.Second
)

// cancelHint is an event that an operator may have cancelled while this worker runs it.
type cancelHint struct {
	event eventqueue.EventID // 0: any
	again bool               // it was asked about before
}

// cancelHints are the events whose claims are renewed at once, instead of with the next heartbeat: the answer says whether their runs have
// to end. So a run is told within moments, and a hint that is lost, or forged, changes nothing else (I2).
type cancelHints struct{ *batcher[cancelHint] }

// hear takes what the reserve has heard.
func (c cancelHints) hear(ids []eventqueue.EventID) {
	if len(ids) == 0 {
		ids = []eventqueue.EventID{0}
	}
	hints := make([]cancelHint, len(ids))
	for i, id := range ids {
		hints[i].event = id
	}
	c.putNewest(maxCancelHints, hints...)
}

// renewCancelled renews the claims of events that operators are said to have cancelled, until ctx ends. Without such a hint it does nothing.
func (h *heart) renewCancelled(ctx context.Context) {
	loop := h.rounds.Loop("heartbeat for cancelled events")
	defer loop.Ends()
	for {
		loop.Waits()
		if !h.cancels.wait(nil, ctx.Done()) {
			return
		}
		loop.Within(h.config.LockTimeout / 2)
		now, hinted := time.Now(), h.cancels.takeNow(nil, maxCancelHints)
		asked := make(map[eventqueue.EventID]bool, len(hinted))
		for _, hint := range hinted {
			asked[hint.event] = true
		}
		due := h.runs.held(now, func(x *execution) bool { return (asked[0] || asked[x.run.ID]) && x.ctx.endCause() == nil })
		h.renew(ctx, now, due)
		for _, x := range due {
			delete(asked, x.run.ID)
		}
		var later []cancelHint
		for _, hint := range hinted {
			if asked[hint.event] && !hint.again {
				later = append(later, cancelHint{hint.event, true})
			}
		}
		if len(later) > 0 {
			time.AfterFunc(askAgainAfter, func() { h.cancels.putNewest(maxCancelHints, later...) })
		}
	}
}
