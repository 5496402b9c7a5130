package fallback

import (
	"time"

	"eventsv2/eventqueue"
)

// suspicion is the state of a notifier that accepts notifications, answers its check, and
// may deliver nothing: an empty subscription and a server that hangs look alike.
type suspicion struct {
	heard       time.Time // when it last delivered something
	searchUntil time.Time // the search for lost notifications goes on until then
	newest      eventqueue.EventID
	confirmed   bool
}

const (
	// deafAfter is how long a notifier may deliver nothing before it is suspected. If it
	// delivers, notifications that seem lost are mostly behind a backlog.
	deafAfter = 10 * time.Second

	// longestLostAfter is a multiple of LostAfter. The notification of an event that a relay has
	// just published again counts as lost at the latest after that time.
	longestLostAfter = 10
)

// suspect is called when a relay has found published events that were not run. It starts
// a search for lost notifications, for a while or until the notifier delivers something.
func (r *Receiver) suspect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.heard) < deafAfter {
		return
	}
	if !now.Before(r.searchUntil) && !r.down {
		r.sweepAt, r.confirmed = now.Add(r.config.Jitter(r.config.Sweep)), false
	}
	r.searchUntil = r.searchEnd(now)
	r.signal()
}

// searchEnd returns when a search may end: late enough to find notifications that were
// published again just now.
func (r *Receiver) searchEnd(now time.Time) time.Time {
	return now.Add(longestLostAfter*r.config.LostAfter + r.config.PollFor)
}

// searching reports whether to search for lost notifications. The caller holds mu.
func (r *Receiver) searching(now time.Time) bool { return r.down || now.Before(r.searchUntil) }

// confirm prolongs a search that has found a new event. An event that was found before
// does not prolong it: an event without a handler anywhere would make it endless.
func (r *Receiver) confirm(lost []eventqueue.Notification) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.newest
	for _, n := range lost {
		newest = max(newest, n.Event)
	}
	now := time.Now()
	if newest == r.newest || !now.Before(r.searchUntil) {
		return
	}
	r.newest, r.searchUntil = newest, r.searchEnd(now)
	if !r.confirmed {
		r.confirmed = true
		r.config.Logger.Warn("the notifier answers but does not deliver: its events are found in the database until it delivers, or no new ones are found")
	}
}
