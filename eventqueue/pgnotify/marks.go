package pgnotify

import (
	"sync"
	"time"
)

// wholeEvery is the time between two looks from the beginning of the table, while
// there are looks.
const wholeEvery = time.Second

// look is one look into the table: it sees the places above a mark.
type look struct {
	above int64
	kind  lookKind
}

type lookKind uint8

const (
	// whole sees everything.
	whole lookKind = iota
	// settled sees what came within the last second or two, and later.
	settled
	// front sees what comes after everything that was taken.
	front
)

// marks tells each look where to begin. A taken row stays in the table and in its
// index until Postgres cleans up, and a look from the beginning passes all of
// them; so a look in a backlog begins where the last one ended.
//
// What it may pass over that way are rows whose statement took its places
// earlier and committed later, and rows that somebody had locked and did not
// take. Therefore the look after the end of a backlog begins at the place that
// was the highest one to two seconds ago; and about once a second while there are
// looks, and once after the last of them, one begins at the beginning. After a
// crash of Postgres places begin anew, which a whole look notices.
type marks struct {
	mu      sync.Mutex
	highest int64 // place taken
	recent  int64 // highest when the last whole look began
	settled int64 // highest when the whole look before that began
	backlog bool  // the last look took as much as it might
	wholeAt time.Time
}

func (m *marks) begin(now time.Time) look {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.wholeAt.IsZero() || now.Sub(m.wholeAt) >= wholeEvery:
		m.wholeAt = now
		m.settled, m.recent = m.recent, m.highest
		return look{0, whole}
	case m.backlog:
		return look{m.highest, front}
	default:
		return look{m.settled, settled}
	}
}

// next is when to look again though nobody rings: at the given time, or never
// when it is the zero time.
type next struct {
	now bool
	at  time.Time
}

// end notes the highest place that a look took, 0 for none, and whether it took
// as many as it might.
func (m *marks) end(l look, highest int64, full bool) next {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.kind == whole && highest > 0 && highest < m.highest {
		// Places have begun anew, or what is left is far behind.
		m.recent, m.settled = min(m.recent, highest), min(m.settled, highest)
		m.highest = highest
	}
	m.highest = max(m.highest, highest)
	m.backlog = full
	switch {
	case full || l.kind == front:
		return next{now: true}
	case l.kind == settled:
		return next{at: m.wholeAt.Add(wholeEvery)}
	default:
		return next{}
	}
}
