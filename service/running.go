package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// closeWaits is how long Close waits for the end of Run beyond the configured grace period of handlers; it is
// longer than the default one, and what a stop takes.
const closeWaits = 20 * time.Second

// running is a Run that Close may have to end. It is safe for concurrent use.
type running struct {
	mu     sync.Mutex
	stop   context.CancelFunc // nil: Run has not begun
	ended  chan struct{}
	closed bool
}

// begin returns the context of Run, and what it calls at its end.
func (r *running) begin(ctx context.Context) (context.Context, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ctx, nil, errors.New("service.Service: Run was called after Close: open another Service")
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	r.stop, r.ended = stop, ended
	return ctx, func() {
		stop()
		close(ended)
	}, nil
}

// end stops Run, if it has begun, and waits until it has ended.
func (r *running) end(within time.Duration) error {
	r.mu.Lock()
	r.closed = true
	stop, ended := r.stop, r.ended
	r.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("service.Service: Close has stopped Run, which has not returned for %s, so nothing is closed: "+
			"what AddPart has added must return when its context ends, and must not call Close", within)
	}
}
