package service

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/inspect"
)

const (
	// runnableHolds is how long an answer holds: who asks more often costs the database nothing.
	runnableHolds = time.Second
	// runnableTakes bounds the statement.
	runnableTakes = 5 * time.Second
)

// runnable answers how many events could run now, from one statement per second at most. It is for
// concurrent use.
type runnable struct {
	count func(ctx context.Context, most int) (int, error)
	log   *zap.Logger

	mu    sync.Mutex
	last  int
	err   error
	until time.Time
}

func (r *runnable) read(ctx context.Context) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.last, r.err
	}
	// Who asked first may have gone; the answer is for all.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runnableTakes)
	defer cancel()
	failed := r.err != nil
	if r.last, r.err = r.count(ctx, inspect.MaxRunnable); r.err != nil && !failed {
		r.log.Warn("could not count runnable events; an autoscaler gets no answer until this works again", zap.Error(r.err))
	}
	r.until = time.Now().Add(runnableHolds)
	return r.last, r.err
}

// ServeHTTP answers GET /runnable. Without a number it answers 503, so that an autoscaler leaves
// things as they are.
func (r *runnable) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	n, err := r.read(request.Context())
	if err != nil {
		http.Error(w, "cannot count runnable events: see the log", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"runnable": n}) // who asked hung up
}
