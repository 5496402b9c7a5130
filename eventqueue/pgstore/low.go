package pgstore

import (
	"slices"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/priority"
)

// How many events of low priority of one scope wait at most after a store has let them go: leastLow at
// first, and twice as many from look to look while half of them begin meanwhile. While one has waited for
// longer than lowTarget there is more to do than workers can, and there are half as many from look to look.
// The looks are shortLowRest apart, and up to longLowRest then. Of all scopes, mostLow wait.
const (
	leastLow     = 16
	mostLow      = 2 * eventqueue.MaxPublish
	lowTarget    = 300 * time.Millisecond
	shortLowRest = 50 * time.Millisecond
	longLowRest  = time.Second
	// lowWaitsFor is when one that waits counts no longer: its notification was lost, or no worker has its handler.
	lowWaitsFor = 5 * time.Minute

	// While a store is behind, lowShare others make room for one event of low priority.
	lowShare = 10
	// pageScopes is how many scopes a statement visits, and highParts into how many parts a page of high
	// priority is divided, of which each scope gets one.
	pageScopes = 64
	highParts  = 8
)

// ranks has what a store knows of pending notifications with a priority. A notifier delivers in its own order,
// so those of low priority stay in the database until those before them have begun: then others have no more
// than a few of them in front, and a backlog of them is worked off as fast as workers can. Each scope has a
// window of its own, so that none waits for what another cannot run.
type ranks struct {
	mu        sync.Mutex
	there     bool // there may be some
	high, low place
	others    int  // taken since the last one of low priority
	roundUp   bool // the half of an odd number
	windows   map[eventqueue.Scope]*lowWindow
	gone      map[eventqueue.EventID]lowGone // let go, and perhaps waiting
	asking    bool                           // about these
	looked    time.Time
	rest      time.Duration // to the next look
}

// place is how far a store has come with a priority.
type place struct {
	after eventqueue.Scope
	left  bool // there is more
}

// lowWindow is that of a scope.
type lowWindow struct {
	most int // events that may wait
	gone int // that do
}

type lowGone struct {
	scope eventqueue.Scope
	since time.Time
}

// areThere reports whether notifications with a priority may be pending.
func (r *ranks) areThere() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.there
}

// see records whether some are, and returns that.
func (r *ranks) see(there bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.there = there || r.high.left || r.low.left
	return there
}

// credit is how many events of low priority may be taken for the others that were, to which it adds some.
func (r *ranks) credit(others int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others = min(r.others+others, lowShare*eventqueue.MaxPublish)
	return r.others / lowShare
}

// restLeft is how long it is until something may be taken that was left; 0 if nothing was.
func (r *ranks) restLeft(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.high.left:
		return time.Millisecond
	case r.low.left:
		return max(r.looked.Add(r.rest).Sub(now), time.Millisecond)
	default:
		return 0
	}
}

// toAsk are the events that were let go, and whether it is time to ask about them. found ends that.
func (r *ranks) toAsk(now time.Time) (gone []eventqueue.EventID, isTime bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.gone) == 0 || r.asking && now.Before(r.looked.Add(time.Minute)) || now.Before(r.looked.Add(r.rest)) {
		return nil, false
	}
	for id := range r.gone {
		gone = append(gone, id)
	}
	slices.Sort(gone)
	r.looked, r.asking = now, true
	return gone, true
}

// found takes in which of those that were asked about still wait.
func (r *ranks) found(asked, waiting []eventqueue.EventID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = false
	still := make(map[eventqueue.EventID]bool, len(waiting))
	for _, id := range waiting {
		still[id] = true
	}
	begun, longest := map[eventqueue.Scope]int{}, map[eventqueue.Scope]time.Duration{}
	for _, id := range asked {
		g := r.gone[id]
		if waits := now.Sub(g.since); still[id] && waits < lowWaitsFor {
			longest[g.scope] = max(longest[g.scope], waits)
			continue
		}
		delete(r.gone, id)
		if w := r.windows[g.scope]; w != nil {
			w.gone--
		}
		begun[g.scope]++
	}
	slow, fast := len(asked) == 0, false
	for scope, w := range r.windows {
		switch {
		case longest[scope] > lowTarget:
			w.most, slow = max(w.most/2, leastLow), true
		case begun[scope] > 0 && 2*begun[scope] >= w.most:
			w.most, fast = min(2*w.most, eventqueue.MaxPublish), true
		case w.gone == 0:
			delete(r.windows, scope)
		}
	}
	switch {
	case fast:
		r.rest = shortLowRest
	case slow:
		r.rest = min(2*r.rest, longLowRest)
	}
}

// rankedPage is a page of pending notifications of one priority.
type rankedPage struct {
	priority string
	after    eventqueue.Scope
	windows  map[eventqueue.Scope]int // the room of some scopes
	room     int                      // that of the others
	limit    int

	found  []eventqueue.Notification
	scopes map[eventqueue.EventID]eventqueue.Scope
	last   eventqueue.Scope // the last scope that the statement has visited
	of     int              // events of it
	seen   int              // scopes
	more   bool             // there is more than there is room for
	full   bool
}

// half is half of a page, of an odd one now the smaller part and now the greater.
func (r *ranks) half(limit int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit%2 == 0 {
		return limit / 2
	}
	if r.roundUp = !r.roundUp; r.roundUp {
		return limit/2 + 1
	}
	return limit / 2
}

func (r *ranks) highPage(limit int) rankedPage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return rankedPage{priority: priority.High, after: r.high.after, room: max(limit/highParts, 1), limit: limit}
}

func (r *ranks) lowPage(limit int) rankedPage {
	r.mu.Lock()
	defer r.mu.Unlock()
	page := rankedPage{priority: priority.Low, after: r.low.after, room: leastLow, windows: map[eventqueue.Scope]int{}, limit: max(min(limit, mostLow-len(r.gone)), 0)}
	for scope, w := range r.windows {
		page.windows[scope] = max(w.most-w.gone, 0)
	}
	return page
}

// arguments are those of prioritizedSQL, from the place on.
func (p *rankedPage) arguments() []any {
	canvases, modules, names, rooms := [][16]byte{}, []string{}, []string{}, []int32{}
	for scope, room := range p.windows {
		canvases, modules, names, rooms = append(canvases, scope.Canvas), append(modules, scope.Module), append(names, scope.Name), append(rooms, int32(room))
	}
	return []any{[16]byte(p.after.Canvas), p.after.Module, p.after.Name, canvases, modules, names, rooms, p.room, pageScopes}
}

// add adds a row of the answer; the rows of a scope follow each other.
func (p *rankedPage) add(scope eventqueue.Scope, room int, id *eventqueue.EventID) {
	if p.full {
		return
	}
	if id != nil && len(p.found) == p.limit {
		p.full, p.more = true, true
		return
	}
	if p.seen == 0 || scope != p.last {
		p.last, p.of = scope, 0
		p.seen++
	}
	switch {
	case id == nil:
	case p.of == room:
		p.more = true
	default:
		p.of++
		p.found = append(p.found, eventqueue.Notification{Event: *id, Canvas: scope.Canvas})
		if p.scopes == nil {
			p.scopes = map[eventqueue.EventID]eventqueue.Scope{}
		}
		p.scopes[*id] = scope
	}
}

// took records what was taken of a page, and where the next one begins.
func (r *ranks) took(p *rankedPage, taken []eventqueue.Notification, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := &r.high
	if p.priority == priority.Low {
		at = &r.low
	}
	began := at.after
	at.after = eventqueue.Scope{}
	if p.full || p.seen == pageScopes {
		at.after = p.last
	}
	at.left = p.more || at.after != eventqueue.Scope{} || began != eventqueue.Scope{}
	if p.priority == priority.High {
		return
	}
	if r.gone == nil {
		r.gone, r.windows = map[eventqueue.EventID]lowGone{}, map[eventqueue.Scope]*lowWindow{}
	}
	for _, n := range taken {
		scope := p.scopes[n.Event]
		w := r.windows[scope]
		if w == nil {
			w = &lowWindow{most: leastLow}
			r.windows[scope] = w
		}
		w.gone++
		r.gone[n.Event] = lowGone{scope, now}
	}
	r.others = max(r.others-lowShare*len(taken), 0)
	if r.rest == 0 {
		r.rest = shortLowRest
	}
}
