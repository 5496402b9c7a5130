package worker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// refusedAfter is how long answers of a kind have to fail before that is reported.
	refusedAfter = 10 * time.Second
	// refusedHolds is how long a failure counts after the last one: where nothing is answered,
	// nothing is tried. What could not be answered comes again when its lease ends, before that.
	refusedHolds = 2 * time.Minute
)

// ailing is a Receiver that can work while its notifier is down.
type ailing interface {
	Failure() error
}

// refusals records whether the notifier takes answers of one kind. It is safe for concurrent use.
type refusals struct {
	kind string

	mu   sync.Mutex
	from time.Time // when the first request began that failed since one succeeded; zero if none did
	last time.Time // when the last one failed
	err  error     // of that
}

// record records the result of a request that began at some time.
func (r *refusals) record(began time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if err == nil {
		r.from, r.err = time.Time{}, nil
		return
	}
	if r.from.IsZero() || now.Sub(r.last) > refusedHolds {
		r.from = began
	}
	r.last, r.err = now, err
}

// failure returns why the notifier takes no answers of this kind, once that has lasted.
func (r *refusals) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || r.last.Sub(r.from) < refusedAfter || time.Since(r.last) > refusedHolds {
		return nil
	}
	return fmt.Errorf("notifications cannot be %s: %w", r.kind, r.err)
}

// answering records whether the notifier takes answers.
type answering struct{ acks, requeues refusals }

func newAnswering() *answering {
	return &answering{acks: refusals{kind: "acknowledged"}, requeues: refusals{kind: "requeued"}}
}

// failure returns an *UntakenError, or nil.
func (a *answering) failure() error {
	var kinds []string
	var errs []error
	for _, r := range []*refusals{&a.acks, &a.requeues} {
		if err := r.failure(); err != nil {
			kinds, errs = append(kinds, r.kind), append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &UntakenError{Kind: strings.Join(kinds, " or "), Err: errors.Join(errs...)}
}

// UntakenError is returned by [Worker.NotifierError] while the notifier delivers notifications and
// does not take what the worker answers, so that they come again.
type UntakenError struct {
	Kind string // what they cannot be: "acknowledged", "requeued", or "acknowledged or requeued"
	Err  error  // that of the notifier
}

func (e *UntakenError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UntakenError) Unwrap() error { return e.Err }
