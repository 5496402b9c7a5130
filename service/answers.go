package service

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errNotBegun is why a program is not ready that waits for its database.
var errNotBegun = errors.New("the program waits for its database")

// readyTimeout bounds one answer of /readyz.
const readyTimeout = 3 * time.Second

// answerHolds is how long one answer of the database and the notifier is used again, however
// often somebody asks: an idle program is probed for ever.
const answerHolds = 10 * time.Second

// answers bounds the cost of requests. Concurrent requests share one answer.
type answers struct {
	ready func(context.Context) error

	mu   sync.Mutex
	last *answer // perhaps not there yet
}

type answer struct {
	there chan struct{} // closed when it is
	err   error
	at    time.Time
	until time.Time
}

// ask returns the result of ready, or its last one if that is recent, and how old it is. A
// call of ready has readyTimeout, even if its caller gives up. When ctx ends first, its error
// is returned.
func (a *answers) ask(ctx context.Context) (age time.Duration, err error) {
	last := a.current(context.WithoutCancel(ctx))
	select {
	case <-last.there:
		return time.Since(last.at), last.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// current is the last answer, unless that has expired.
func (a *answers) current(ctx context.Context) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil {
		select {
		case <-a.last.there:
			if time.Now().Before(a.last.until) {
				return a.last
			}
		default:
			return a.last
		}
	}
	next := &answer{there: make(chan struct{})}
	a.last = next
	go func() {
		defer close(next.there)
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		if next.err = a.ready(ctx); !errors.Is(next.err, errNotBegun) { // which costs nothing, and ends at once
			next.until = time.Now().Add(answerHolds)
		}
		next.at = time.Now()
	}()
	return next
}
