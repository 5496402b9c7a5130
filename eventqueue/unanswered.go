package eventqueue

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/logkey"
	"eventsv2/internal/lostanswer"
	"eventsv2/internal/sqlstate"
)

// Unanswered are events of one handler on one canvas that emits may have committed whose answers
// were lost.
type Unanswered struct {
	Scope
	// Events is how many there are at most.
	Events int
	// Oldest and Newest bound how long ago they were inserted.
	Oldest, Newest time.Duration
}

// unansweredEmits finds the events of emits whose answers were lost, and has them notified:
// otherwise only the relay would find them, by their age (I19).
//
// It knows the handlers of the events and the times at which they may have been inserted, and not
// their ids. So it may also find events of others, which then have a notification too many. For example, an emit of two events at
// 12:00:00 loses its answer at 12:00:03: a second later, and a few times more, the events of their handler that were inserted from
// 12:00:00 to 12:00:04 are searched for, until two are found. It
// sends nothing while emits are answered, and has no goroutine but during a search.
type unansweredEmits struct {
	search  func(ctx context.Context, asked []Unanswered) ([]Notification, error)
	publish func(notifications []Notification)
	log     *zap.Logger

	mu      sync.Mutex
	sought  map[Scope]*soughtEvents
	timer   *time.Timer   // of the next search; nil while nothing is sought, and during a search
	busy    chan struct{} // closed when the search under way ends; nil when there is none
	awaits  int           // emits that wait for their answers
	none    chan struct{} // closed when there is none of them any more; nil when there is none
	closing bool          // the last search is close's, and asks for everything
}

// soughtEvents are the events of one scope to search for.
type soughtEvents struct {
	late     map[*awaited]bool // emits that may still get their answers
	lost     bool              // there is an emit that has lost its answer
	count    int
	from, to time.Time // of their emits
	next     time.Time // of the next search
	answered int       // searches
	failed   int       // searches in a row
	notified map[EventID]bool
}

const (
	// maxSearchScopes bounds what one search asks for, maxSought the scopes, and maxSoughtEvents the events
	// of each.
	maxSearchScopes = 100
	maxSought       = 1000
	maxSoughtEvents = 10_000

	// lateInsert is how long after its failure an emit may still be inserted.
	lateInsert = time.Second
)

// An insert may still be under way on the server when its emitter has lost the connection, and
// commit later. So there are further searches, after these waits.
var lateSearches = [...]time.Duration{time.Second, 3 * time.Second, 10 * time.Second}

// awaited is an emit that waits for its answer.
type awaited struct {
	emits *unansweredEmits
	from  time.Time
	timer *time.Timer

	mu     sync.Mutex
	events [][]NewEvent  // nil when it is over, and they may be the caller's again
	sought map[Scope]int // how many of them are searched for; nil while none are
}

// await is called before events are committed, which were inserted since from. It retains them
// until over is called, which it has to be.
func (u *unansweredEmits) await(from time.Time, events ...[]NewEvent) *awaited {
	a := &awaited{emits: u, from: from, events: events}
	a.timer = time.AfterFunc(lostanswer.AnswerTakes, a.seek)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.awaits++; u.awaits == 1 {
		u.none = make(chan struct{})
	}
	return a
}

// over ends the wait with the result of the commit.
func (a *awaited) over(err error) {
	a.timer.Stop()
	lost := err != nil && sqlstate.MayHaveCommitted(err)
	if lost {
		a.seek()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.emits.gotAnswer(a, lost)
	a.events = nil
}

// gotAnswer notes that an emit no longer waits. An answer that was only late ends the search for its events,
// unless there is another reason for it.
func (u *unansweredEmits) gotAnswer(a *awaited, lost bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.awaits--; u.awaits == 0 {
		close(u.none)
		u.none = nil
	}
	for scope := range a.sought {
		s := u.sought[scope]
		if s == nil || !s.late[a] {
			continue
		}
		delete(s.late, a)
		if s.lost = s.lost || lost; !s.lost && len(s.late) == 0 {
			delete(u.sought, scope)
		}
	}
}

// seek has the events searched for.
func (a *awaited) seek() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sought = map[Scope]int{}
	for _, events := range a.events {
		for i := range events {
			a.sought[Scope{events[i].Canvas, events[i].Module, events[i].Name}]++
		}
	}
	a.emits.add(a)
}

// add has the events of an emit searched for. It does not block.
func (u *unansweredEmits) add(a *awaited) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	for scope, n := range a.sought {
		s := u.sought[scope]
		if s == nil {
			if len(u.sought) >= maxSought {
				continue
			}
			s = &soughtEvents{from: a.from, next: now.Add(lostanswer.CollectFor), late: map[*awaited]bool{}}
			u.sought[scope] = s
		}
		s.late[a] = true
		s.count = min(s.count+n, maxSoughtEvents)
		if a.from.Before(s.from) {
			s.from = a.from
		}
		if s.answered > 0 { // failures go on: so does their wait
			s.answered, s.next = 0, now.Add(lostanswer.CollectFor)
		}
		s.to = now
	}
	u.schedule()
}

// schedule sets the timer. The caller holds the lock.
func (u *unansweredEmits) schedule() {
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
	if u.busy != nil || len(u.sought) == 0 || u.closing {
		return
	}
	var first time.Time
	for _, s := range u.sought {
		if first.IsZero() || s.next.Before(first) {
			first = s.next
		}
	}
	u.timer = time.AfterFunc(time.Until(first), func() { u.searchNow(context.Background(), false) })
}

// searchNow searches for what is due, or for everything; it returns false, at once, if a search is
// under way.
func (u *unansweredEmits) searchNow(ctx context.Context, everything bool) bool {
	u.mu.Lock()
	if u.busy != nil {
		u.mu.Unlock()
		return false
	}
	u.busy = make(chan struct{})
	asked := u.due(everything)
	u.mu.Unlock()

	var found []Notification
	var err error
	began := time.Now()
	if len(asked) > 0 {
		ctx, cancel := context.WithTimeout(ctx, lostanswer.SearchTakes)
		found, err = u.search(ctx, asked)
		cancel()
	}

	u.mu.Lock()
	fresh := u.record(asked, found, err, began)
	close(u.busy)
	u.busy = nil
	u.schedule()
	u.mu.Unlock()
	if len(fresh) > 0 {
		u.log.Warn("answers of emits were lost; notified the events that may be theirs", zap.Int(logkey.Count, len(fresh)))
		u.publish(fresh)
	}
	return true
}

// due returns what is to be searched for. The caller holds the lock.
func (u *unansweredEmits) due(everything bool) (asked []Unanswered) {
	now := time.Now()
	for scope, s := range u.sought {
		if everything || !s.next.After(now) {
			asked = append(asked, Unanswered{
				Scope: scope, Events: s.count,
				// The database is asked a moment later.
				Oldest: now.Sub(s.from) + lostanswer.SearchTakes, Newest: max(now.Sub(s.to)-lateInsert, 0),
			})
		}
	}
	slices.SortFunc(asked, func(a, b Unanswered) int {
		return cmp.Or(bytes.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
	})
	return asked[:min(len(asked), maxSearchScopes)]
}

// record decides what a search that began at some time means for the next one, and returns what it
// has found for the first time. The caller holds the lock.
func (u *unansweredEmits) record(asked []Unanswered, found []Notification, err error, began time.Time) (fresh []Notification) {
	refused := sqlstate.Refused(err)
	if refused {
		u.log.Error("the database refuses the search for events of emits whose answers were lost; they are notified later, by the relay", zap.Error(err))
	}
	earlier, all := map[EventID]bool{}, map[EventID]bool{}
	for _, n := range found {
		all[n.Event] = true
	}
	gaveUp := 0
	for _, a := range asked {
		s := u.sought[a.Scope]
		if s == nil {
			continue // the answer came during the search
		}
		for id := range s.notified {
			earlier[id] = true
		}
		switch {
		case refused:
			delete(u.sought, a.Scope)
		case err != nil && began.Sub(s.to) > lostanswer.GiveUpAfter:
			gaveUp++
			delete(u.sought, a.Scope)
		case err != nil:
			s.next = time.Now().Add(min(lostanswer.LeastWait<<min(s.failed, 10), lostanswer.MaxWait))
			s.failed++
		case s.to.After(began): // it was added to during the search
			s.failed, s.answered, s.notified = 0, 0, all
			s.next = s.to.Add(lostanswer.CollectFor)
		case s.answered == len(lateSearches):
			delete(u.sought, a.Scope)
		default:
			s.failed, s.notified = 0, all
			s.next = time.Now().Add(lateSearches[s.answered])
			s.answered++
		}
	}
	if gaveUp > 0 {
		u.log.Warn("could not search for events of emits whose answers were lost; they are notified later, by the relay", zap.Error(err))
	}
	return slices.DeleteFunc(found, func(n Notification) bool { return earlier[n.Event] })
}

// close waits for the answers of emits, searches a last time, at once, for what is still sought, and
// forgets it. It returns earlier when ctx ends.
func (u *unansweredEmits) close(ctx context.Context) error {
	u.mu.Lock()
	u.closing = true
	u.schedule()
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.closing = false
		u.schedule()
	}()
	for {
		u.mu.Lock()
		until := u.none
		if until == nil {
			until = u.busy
		}
		u.mu.Unlock()
		if until == nil && u.searchNow(ctx, true) {
			break
		}
		if err := waitFor(ctx, until); err != nil {
			return err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.sought)
	return ctx.Err()
}
