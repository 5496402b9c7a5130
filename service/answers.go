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

// answerHolds is how long one answer of the database and the notifier is used again, from when it was
// asked for, however often it is requested: an idle program is probed for ever.
const answerHolds = 10 * time.Second

// reachedHolds is for how long it is taken for granted that Postgres answers. A Postgres that hangs takes
// readyTimeout more to be noticed, which together is less than answerHolds (I19).
const reachedHolds = 6 * time.Second

// answers bounds the cost of requests. Concurrent requests share one answer.
type answers struct {
	ready func(context.Context) error
	// reached reports whether Postgres answers, and sends it no statement. It is asked between two calls
	// of ready; nil: nothing is.
	reached func(context.Context) error

	mu   sync.Mutex
	last *answer // perhaps not there yet
}

type answer struct {
	there   chan struct{} // closed when it is
	err     error
	at      time.Time
	until   time.Time
	reached time.Time // when Postgres was asked last
}

// ask returns the result of ready, or its last one if that is recent, and how old it is. A
// call of ready has readyTimeout, even if its caller gives up. When ctx ends first, its error
// is returned.
func (a *answers) ask(ctx context.Context) (age time.Duration, err error) {
	last := a.current(context.WithoutCancel(ctx), time.Now())
	select {
	case <-last.there:
		return time.Since(last.at), last.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// current is the last answer, or the next one, when that has expired or it is doubtful whether Postgres
// answers still.
func (a *answers) current(ctx context.Context, now time.Time) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil {
		select {
		case <-a.last.there:
		default:
			return a.last
		}
		if now.Before(a.last.until) {
			if a.reached != nil && reaches(a.last.err) && now.Sub(a.last.reached) >= reachedHolds {
				a.last = a.asked(ctx, now, a.confirm(*a.last))
			}
			return a.last
		}
	}
	a.last = a.asked(ctx, now, func(ctx context.Context, next *answer) {
		if next.err = a.ready(ctx); !errors.Is(next.err, errNotBegun) { // which costs nothing, and ends at once
			next.until = now.Add(answerHolds) // however long it took, as where Postgres hangs
		}
		next.at = time.Now()
	})
	return a.last
}

// asked returns an answer that ask is finding.
func (a *answers) asked(ctx context.Context, now time.Time, ask func(context.Context, *answer)) *answer {
	next := &answer{there: make(chan struct{}), reached: now}
	go func() {
		defer close(next.there)
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		ask(ctx, next)
	}()
	return next
}

// confirm has the last answer stand if Postgres answers. Either way ready is called no sooner.
func (a *answers) confirm(last answer) func(context.Context, *answer) {
	return func(ctx context.Context, next *answer) {
		next.err, next.at, next.until = last.err, last.at, last.until
		if err := a.reached(ctx); err != nil {
			next.err, next.at = err, time.Now()
		}
	}
}

// reaches reports whether an answer says that Postgres was reached.
func reaches(err error) bool {
	notifier := new(notifierError)
	return err == nil || errors.As(err, &notifier)
}
