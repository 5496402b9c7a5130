package httpapi

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// turnTimeout is how long a large body waits for its turn.
const turnTimeout = 3 * time.Second

// turns has the large bodies of each identity take turns: they do not cut each other off while they arrive, and no
// identity waits for those of another one.
type turns struct {
	bytes int64 // for the large bodies of one identity

	mu sync.Mutex
	of map[string]*turn // of those who have or await one
}

type turn struct {
	room  *semaphore.Weighted
	users int
}

// take waits until it is the turn of a body that takes so much memory. If ok, the caller calls end.
func (t *turns) take(ctx context.Context, identity string, bytes int64) (end func(), ok bool) {
	t.mu.Lock()
	of := t.of[identity]
	if of == nil {
		of = &turn{room: semaphore.NewWeighted(t.bytes)}
		t.of[identity] = of
	}
	of.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(t.of, identity)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	if of.room.Acquire(ctx, bytes) != nil {
		leave()
		return nil, false
	}
	return func() {
		of.room.Release(bytes)
		leave()
	}, true
}
