package pgnotify

import (
	"sync"
	"time"
)

// wholeEvery is the time between two polls from the beginning of the table, while
// there are polls.
const wholeEvery = time.Second

// poll is one poll of the table: it sees the places above a mark.
type poll struct {
	above int64
	kind  pollKind
}

type pollKind uint8

const (
	// whole sees all rows.
	whole pollKind = iota
	// recent sees the rows of the last second or two, and later ones.
	recent
	// front sees the rows after all that were taken.
	front
)

// marks decides where each poll begins. A taken row stays in the table and in its
// index until Postgres cleans up, and a poll from the beginning passes all such
// rows; so a poll in a backlog begins where the last one ended.
//
// It may pass over rows whose statement took its places earlier and committed
// later, and rows that another transaction had locked and did not take. Therefore
// the poll after the end of a backlog begins at the place that was the highest one
// to two seconds ago; and about once a second while there are polls, and once after
// the last of them, a poll begins at the beginning. After a crash of Postgres places
// start again from the beginning, which a whole poll notices.
type marks struct {
	mu       sync.Mutex
	highest  int64 // the highest place taken
	lastMark int64 // highest when the last whole poll began
	oldMark  int64 // highest when the whole poll before that began
	backlog  bool  // the last poll took as many rows as it was allowed to
	wholeAt  time.Time
}

func (m *marks) begin(now time.Time) poll {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.wholeAt.IsZero() || now.Sub(m.wholeAt) >= wholeEvery:
		m.wholeAt = now
		m.oldMark, m.lastMark = m.lastMark, m.highest
		return poll{0, whole}
	case m.backlog:
		return poll{m.highest, front}
	default:
		return poll{m.oldMark, recent}
	}
}

// next is when to poll again without a NOTIFY: now, or at the given time, or never
// if that is the zero time.
type next struct {
	now bool
	at  time.Time
}

// end records the highest place that a poll took, 0 for none, and whether it took
// as many rows as it was allowed to.
func (m *marks) end(l poll, highest int64, full bool) next {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.kind == whole && highest > 0 && highest < m.highest {
		// Places have started again, or the rows that are left are far behind.
		m.lastMark, m.oldMark = min(m.lastMark, highest), min(m.oldMark, highest)
		m.highest = highest
	}
	m.highest = max(m.highest, highest)
	m.backlog = full
	switch {
	case full || l.kind == front:
		return next{now: true}
	case l.kind == recent:
		return next{at: m.wholeAt.Add(wholeEvery)}
	default:
		return next{}
	}
}
