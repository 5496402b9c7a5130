package lostanswer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
)

// The times of a search.
const (
	// AnswerTakes is when a statement counts as unanswered that may still get its answer.
	AnswerTakes = 1500 * time.Millisecond
	// CollectFor is the time from then, or from its failure, to the search: together they are below
	// the 2 s within which an event has to start after any single failure. What fails together is
	// searched for together; the nanosecond has what begins at the same instants of a virtual clock
	// come first.
	CollectFor = 200*time.Millisecond + time.Nanosecond
	// SearchTakes bounds one search.
	SearchTakes = 2 * time.Second
	// LeastWait is the wait after a search that fails; the next ones are twice as long each time.
	LeastWait = 250 * time.Millisecond
	// MaxWait bounds these waits.
	MaxWait = 5 * time.Second
	// GiveUpAfter is when it is left to the relay.
	GiveUpAfter = time.Minute

	// maxTakes bounds what is remembered.
	maxTakes = 10_000
)

// Takes are pending notifications that may have been taken by a statement whose answer was
// lost, so that they are never published. They are marked as pending again, which wakes the relay:
// otherwise it would find them only by their age (I19). It may mark one that was published after all,
// which then has a notification too many.
//
// For example, the relay takes the events 1 and 2, and the connection breaks before the answer. Await's function gets that error and
// adds both; CollectFor later they are marked. Were the answer only late, they would be added by the timer of AnswerTakes, and
// taken out again when it comes.
//
// It sends nothing while takes are answered, and has no goroutine but while it marks. It is safe for
// concurrent use.
type Takes[ID cmp.Ordered] struct {
	store Store[ID]
	log   *zap.Logger

	mu     sync.Mutex
	ids    map[ID]unmarked
	failed int           // marks in a row
	timer  *time.Timer   // of the next mark; nil while there is nothing to mark, and during a mark
	busy   chan struct{} // closed when the mark under way ends; nil when there is none
	cancel func()        // ends that mark
}

// unmarked is a notification that is to be marked.
type unmarked struct {
	added time.Time
	late  *take // the only take that had it, if that may still get its answer
}

// take is a statement that takes notifications.
type take struct{ timer *time.Timer }

// Store marks the notifications of events as pending.
type Store[ID cmp.Ordered] interface {
	MarkPending(ctx context.Context, ids []ID) error
}

// Marker is a Store that skips events whose rows are locked, and returns these. The statement whose answer is
// missing may hold them itself, and commit later: while the disk of a server stalls, a commit outlives its client.
type Marker[ID cmp.Ordered] interface {
	MarkPendingOrHeld(ctx context.Context, ids []ID) (held []ID, err error)
}

// New makes Takes on a store, which may be a Marker.
func New[ID cmp.Ordered](store Store[ID], log *zap.Logger) *Takes[ID] {
	return &Takes[ID]{store: store, log: log, ids: map[ID]unmarked{}}
}

// markPending returns those that have to be marked again.
func (u *Takes[ID]) markPending(ctx context.Context, ids []ID) (held []ID, err error) {
	if marker, is := u.store.(Marker[ID]); is {
		return marker.MarkPendingOrHeld(ctx, ids)
	}
	return nil, u.store.MarkPending(ctx, ids)
}

// Await is called before the statement that takes the notifications of events, and the returned function with its
// result. Without a result for AnswerTakes, they are marked as well.
func (u *Takes[ID]) Await(ids []ID) (over func(err error)) {
	ids = slices.Clone(ids) // the caller may change them when the timer has just fired
	t := &take{}
	t.timer = time.AfterFunc(AnswerTakes, func() { u.add(ids, t) })
	return func(err error) {
		inTime := t.timer.Stop()
		switch {
		case err != nil && sqlstate.MayHaveCommitted(err):
			u.add(ids, nil)
		case !inTime:
			u.forget(ids, t)
		}
	}
}

// AwaitFailure is Await for a caller whose statements end in time by their contexts, and who takes again
// what is marked. Nothing is marked for an answer that is only late: while a database is slow, the same
// notifications would be taken, marked and published again and again.
func (u *Takes[ID]) AwaitFailure(ids []ID) (over func(err error)) {
	ids = slices.Clone(ids)
	return func(err error) {
		if err != nil && sqlstate.MayHaveCommitted(err) {
			u.add(ids, nil)
		}
	}
}

// forget has events not marked whose take was only late.
func (u *Takes[ID]) forget(ids []ID, late *take) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		if u.ids[id].late == late {
			delete(u.ids, id)
		}
	}
}

// add has the events marked. It does not block. The take is nil if it has failed.
func (u *Takes[ID]) add(ids []ID, late *take) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		if len(u.ids) >= maxTakes {
			u.log.Warn("too many answers were lost; some notifications are published later, by the relay", zap.Int(logkey.Count, len(ids)))
			break
		}
		next := unmarked{time.Now(), late}
		if other, found := u.ids[id]; found && other.late != late {
			next.late = nil
		}
		u.ids[id] = next
	}
	if u.timer == nil && u.busy == nil {
		u.timer = time.AfterFunc(CollectFor, func() { u.mark(context.Background()) })
	}
}

// mark marks all of them; it returns false, at once, if a mark is under way.
func (u *Takes[ID]) mark(ctx context.Context) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.busy != nil {
		return false
	}
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
	if len(u.ids) == 0 {
		return true
	}
	busy, began, ids := make(chan struct{}), time.Now(), slices.Sorted(maps.Keys(u.ids))
	ctx, cancel := context.WithTimeout(ctx, SearchTakes)
	u.busy, u.cancel = busy, cancel
	u.mu.Unlock()
	held, err := u.markPending(ctx, ids)
	err = refusal.Report(u.log, err)
	cancel()
	u.mu.Lock()
	u.busy = nil
	close(busy)
	u.record(err, ids, held, began)
	return true
}

// record decides what a mark means that began at some time. The caller holds the lock.
func (u *Takes[ID]) record(err error, ids, held []ID, began time.Time) {
	if marked := len(ids) - len(held); err == nil && marked > 0 {
		u.log.Warn("answers of statements that take notifications were lost; the notifications are pending again", zap.Int(logkey.Count, marked))
	}
	isHeld := make(map[ID]bool, len(held))
	for _, id := range held {
		isHeld[id] = true
	}
	gaveUp := 0
	for _, id := range ids {
		waiting, found := u.ids[id]
		switch added := waiting.added; {
		case !found: // its answer came during the mark
		case added.After(began):
		case err == nil && !isHeld[id]:
			delete(u.ids, id)
		case err != nil && sqlstate.Refused(err), began.Sub(added) > GiveUpAfter:
			gaveUp++
			delete(u.ids, id)
		}
	}
	if gaveUp > 0 {
		u.log.Error("could not mark notifications as pending that may be lost; their events run later, when the relay finds them by their age; "+
			"check that Postgres can be reached, and the rights of this program's role", zap.Int(logkey.Count, gaveUp), zap.Error(err))
	}
	wait := CollectFor
	if u.failed++; err == nil && len(held) == 0 {
		u.failed = 0
	} else {
		wait = min(LeastWait<<min(u.failed-1, 10), MaxWait)
	}
	if len(u.ids) > 0 {
		u.timer = time.AfterFunc(wait, func() { u.mark(context.Background()) })
	}
}

// Close marks a last time, at once, and forgets what is left. When ctx ends it ends the mark under way, so that
// nothing goes on behind it.
func (u *Takes[ID]) Close(ctx context.Context) error {
	for !u.mark(ctx) {
		u.mu.Lock()
		busy, cancel := u.busy, u.cancel
		u.mu.Unlock()
		if busy == nil {
			continue
		}
		select {
		case <-busy:
		case <-ctx.Done():
			cancel()
			<-busy
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.ids)
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
	return ctx.Err()
}
