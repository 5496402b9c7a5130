package lostanswer

import (
	"context"
	"sync"
	"time"
)

// Wait is how long the answers of statements are awaited: at first not so long that an event starts late
// because a connection has died, and longer each time that none has come, so that a database that is only slow
// can answer. It is safe for concurrent use.
type Wait struct {
	first, most time.Duration

	mu    sync.Mutex
	takes time.Duration
}

// NewWait makes a Wait for the given times.
func NewWait(first, most time.Duration) *Wait { return &Wait{first: first, most: most, takes: first} }

// Do calls with a context that ends when the answer is no longer awaited.
func (w *Wait) Do(ctx context.Context, call func(ctx context.Context) error) error {
	w.mu.Lock()
	takes := w.takes
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, takes)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		w.takes = min(2*takes, w.most)
	case err == nil && time.Since(began) < w.first:
		w.takes = w.first
	}
	return err
}
