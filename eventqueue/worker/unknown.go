package worker

import (
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// warnUnknownEvery is how often a worker warns of events of one handler that it does not have.
const warnUnknownEvery = time.Minute

const (
	// unknownWait is the wait after the last of the claims of the first second. It doubles with each
	// further one.
	unknownWait = 500 * time.Millisecond
	// maxHold is the longest wait for which a worker holds such a notification back itself: Pub/Sub
	// counts in seconds.
	maxHold = 700 * time.Millisecond
	// unknownDelays times UnknownDelay is how long a worker goes on trying.
	unknownDelays = 10
	// maxUnknown is how many events a worker retains in one of its two lists.
	maxUnknown = 25_000
	// minRetained is for how long at least.
	minRetained = 10 * time.Second
)

// unknownEarly are the waits after the first claims of an event that a worker has no handler for.
// Together they take 525 ms, and 710 ms of an event that is due for a second or longer, so that eight
// claims are made within a second also where each delivery takes 40 ms.
var unknownEarly = [...]time.Duration{
	10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond,
	110 * time.Millisecond, 125 * time.Millisecond, 140 * time.Millisecond,
}

// unknownLate is how many claims the notification of an old event is worth.
const unknownLate = len(unknownEarly) + 2

// unknown records the events that a worker has no handler for.
type unknown struct {
	mu     sync.Mutex
	warned map[eventqueue.HandlerKey]time.Time // when it has warned: a backlog does not fill the log
	// Events are counted in the current list and the one before: whole lists are deleted.
	current, before map[eventqueue.EventID]unknownEvent
	began           time.Time // of the current list
}

// unknownEvent says how often an event was tried, and when first.
type unknownEvent struct {
	count int
	first time.Time
}

// shouldWarn reports whether it is time to warn of a handler again.
func (u *unknown) shouldWarn(key eventqueue.HandlerKey) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if now.Sub(u.warned[key]) < warnUnknownEvery {
		return false
	}
	if u.warned == nil || len(u.warned) > 1000 { // keys come from rows: keep the map small
		u.warned = map[eventqueue.HandlerKey]time.Time{}
	}
	u.warned[key] = now
	return true
}

// count counts a claim of an event. The event is deleted when it was not tried for as long as
// retained, or twice that. A count of 0 means that there are too many.
func (u *unknown) count(id eventqueue.EventID, retained time.Duration) unknownEvent {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if since := now.Sub(u.began); since >= retained {
		u.before = u.current
		if since >= 2*retained {
			u.before = nil
		}
		u.current, u.began = map[eventqueue.EventID]unknownEvent{}, now
	}
	l, there := u.current[id]
	if !there {
		if len(u.current) >= maxUnknown {
			return unknownEvent{}
		}
		if l, there = u.before[id]; !there {
			l.first = now
		}
	}
	l.count++
	u.current[id] = l
	return l
}

// unknownDelay is the wait before the next claim of an event that this worker has no handler for.
// Another worker may have it, and gets the notification soon: eight claims are made in the first
// second, so that with one of two workers knowing it one event in 2^8 is found later. To have one in
// 2^10 would take ten claims: whose turn it is, no worker can choose. Such a claim writes nothing.
// From then on the waits double, so that an event that no worker knows costs each of them few claims;
// after those the relay publishes its notifications, in growing intervals (I11). A notification that
// comes long after the event was due, as those of the relay do, is worth the short waits only.
//
// A twelfth of the time for which it has been due, of a second at most, is always waited: so the
// claims of many workers are few as well.
func (r *rechecks) unknownDelay(id eventqueue.EventID, facts *machine.Facts) time.Duration {
	most := unknownDelays * r.config.UnknownDelay
	old := facts.Delay < -most // -Delay may overflow
	l := r.unknown.count(id, max(most/2, minRetained))
	switch {
	case l.count == 0 && old, l.count > 0 && time.Since(l.first) > most:
		return leaveToRelay
	case l.count == 0:
		return r.config.UnknownDelay + r.config.Jitter(claimFailedDelay)
	}
	wait := min(unknownBackoff(l.count), r.config.UnknownDelay)
	if old && (wait > maxHold || l.count > unknownLate) {
		return leaveToRelay
	}
	if due := min(-max(facts.Delay, -time.Second), time.Second); wait < due/12 {
		wait = due / 12
	}
	if wait > maxHold {
		wait += r.config.Jitter(claimFailedDelay)
	}
	return wait
}

// unknownBackoff is the wait after so many claims.
func unknownBackoff(claims int) time.Duration {
	if claims <= len(unknownEarly) {
		return unknownEarly[claims-1]
	}
	return unknownWait << min(claims-len(unknownEarly)-1, 20)
}
