package pgstore

import (
	"maps"
	"slices"
	"sync"
	"time"

	"eventsv2/eventqueue"
)

// How many events of low priority wait at most after a store has let them go: leastLow at first, and twice
// as many from look to look while half of them begin meanwhile, up to eventqueue.MaxPublish. While one has
// waited for longer than lowTarget there is more to do than workers can, and there are half as many
// from look to look. The looks are shortLowRest apart, and up to longLowRest then.
const (
	leastLow     = 16
	lowTarget    = 300 * time.Millisecond
	shortLowRest = 50 * time.Millisecond
	longLowRest  = time.Second
	// lowWaitsFor is when one that waits counts no longer, whatever it waits for: so none holds up the
	// others for ever.
	lowWaitsFor = 5 * time.Minute
)

// low has the events of low priority that a store has let go. A notifier delivers in its own order, so
// they stay in the database until those before them have begun: then others have no more than a
// few of them in front, and a backlog of them is worked off as fast as workers can.
type low struct {
	mu     sync.Mutex
	gone   map[eventqueue.EventID]time.Time // let go, and perhaps waiting, since when
	most   int                              // of them, that may wait
	looked time.Time                        // when that was looked at last
	rest   time.Duration                    // to the next look
	left   bool                             // there may be more in the database
}

// restLeft is how long it is until the next look; 0 if nothing is left.
func (l *low) restLeft() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.left {
		return 0
	}
	return max(time.Until(l.looked.Add(l.rest)), time.Millisecond)
}

// toAsk are those that were let go, and whether it is time for a look.
func (l *low) toAsk(now time.Time) (gone []eventqueue.EventID, isTime bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.looked.Add(l.rest)) {
		return nil, false
	}
	return slices.Sorted(maps.Keys(l.gone)), true
}

// found takes in which of those that were let go still wait.
func (l *low) found(waiting []eventqueue.EventID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun := len(l.gone) - len(waiting)
	since := l.gone
	l.gone = make(map[eventqueue.EventID]time.Time, len(waiting))
	longest := time.Duration(0)
	for _, id := range waiting {
		waits := now.Sub(since[id])
		longest = max(longest, waits)
		if waits < lowWaitsFor {
			l.gone[id] = since[id]
		}
	}
	switch {
	case longest > lowTarget:
		l.most, l.rest = max(l.most/2, leastLow), min(2*l.rest, longLowRest)
	case l.left && 2*begun >= l.most:
		l.most, l.rest = min(2*l.most, eventqueue.MaxPublish), shortLowRest
	case !l.left && len(since) == 0:
		l.most, l.rest = leastLow, shortLowRest
	}
	l.looked = now
}

// room is how many more may be let go.
func (l *low) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.most-len(l.gone), 0)
}

// letGo records which of the events that were taken are of low priority, and whether there may be more.
func (l *low) letGo(taken []eventqueue.Notification, isLow map[eventqueue.EventID]bool, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = more
	for _, n := range taken {
		if isLow[n.Event] {
			l.gone[n.Event] = time.Now()
		}
	}
}
