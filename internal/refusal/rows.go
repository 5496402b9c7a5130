package refusal

import (
	"sync"
	"time"
)

// How long a refused row waits before it is tried again, at first and at most, and how many are
// recorded: one that is deleted is found again by halving.
const (
	minWait = time.Second
	MaxWait = 10 * time.Minute
	maxRows = 10_000
)

// Rows records the rows that the database refuses to write. The zero value is ready to use. It is
// safe for concurrent use.
type Rows[K comparable] struct {
	mu   sync.Mutex
	rows map[K]row
}

type row struct {
	wait time.Duration
	next time.Time // of the next try, by this machine's monotonic clock
}

// Empty reports whether no row is recorded. A row that nobody has tried for long is deleted: it may
// be gone.
func (r *Rows[K]) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return true
	}
	longAgo := time.Now().Add(-MaxWait)
	for k, row := range r.rows {
		if row.next.Before(longAgo) {
			delete(r.rows, k)
		}
	}
	return len(r.rows) == 0
}

// Part separates the rows that may be written together from those that were refused: those whose
// time has come are to be tried alone, and the others wait.
func (r *Rows[K]) Part(keys []K) (together, alone []K, waits map[K]time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return keys, nil, nil
	}
	now := time.Now()
	waits = map[K]time.Duration{}
	for _, k := range keys {
		row, refused := r.rows[k]
		switch {
		case !refused:
			together = append(together, k)
		case now.Before(row.next):
			waits[k] = row.next.Sub(now)
		default:
			alone = append(alone, k)
		}
	}
	return together, alone, waits
}

// Waiting returns the rows that are not to be tried yet.
func (r *Rows[K]) Waiting() []K {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := make([]K, 0, len(r.rows))
	now := time.Now()
	for k, row := range r.rows {
		if now.Before(row.next) {
			waiting = append(waiting, k)
		}
	}
	return waiting
}

// Put records that a row was refused, for the first time or again, and returns how long it has to
// wait, at most so long.
func (r *Rows[K]) Put(k K, most time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused, again := r.rows[k]
	if !again {
		r.makeRoom()
		refused.wait = minWait / 2
	}
	refused.wait = min(2*refused.wait, most)
	refused.next = time.Now().Add(refused.wait / 2) // one that is tried a little early is not put off once more
	r.rows[k] = refused
	return refused.wait
}

// makeRoom deletes any row when there are too many.
func (r *Rows[K]) makeRoom() {
	if r.rows == nil {
		r.rows = map[K]row{}
	}
	for k := range r.rows {
		if len(r.rows) < maxRows {
			return
		}
		delete(r.rows, k)
	}
}

// Remove deletes rows that could be written.
func (r *Rows[K]) Remove(keys []K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return
	}
	for _, k := range keys {
		delete(r.rows, k)
	}
}
