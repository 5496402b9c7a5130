package worker

import (
	"sync"
	"time"

	"eventsv2/eventqueue"
)

const (
	// maxCopies is how many events are retained in one of the two lists.
	maxCopies = 100_000
	// copiesRetained is for how long at least: no notification is requeued for longer.
	copiesRetained = eventqueue.MaxRequeue
)

// copies records when the notifications of events come back that a worker has requeued because a circuit breaker is open. The
// relay publishes an event again from time to time that is due and does not run. Its notification must not be
// requeued beside the one that is under way, or there would be more of them the longer a target is away (I11).
type copies struct {
	mu sync.Mutex
	// Events are in the current list or the one before: whole lists are deleted.
	current, before map[eventqueue.EventID]time.Time
	began           time.Time // of the current list
}

// another reports whether another notification of the event comes back to this worker. If none does, this one is
// recorded as coming back after wait.
func (c *copies) another(id eventqueue.EventID, wait time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.began) >= copiesRetained {
		c.before, c.current, c.began = c.current, map[eventqueue.EventID]time.Time{}, now
	}
	back, there := c.current[id]
	if !there {
		back = c.before[id]
	}
	if now.Before(back) {
		return true
	}
	if there || len(c.current) < maxCopies {
		c.current[id] = now.Add(wait - wait/4) // a notifier may deliver it somewhat earlier
	}
	return false
}
