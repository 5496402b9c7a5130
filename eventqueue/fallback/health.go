package fallback

import (
	"context"
	"errors"
	"time"

	"eventsv2/internal/backoff"

	"go.uber.org/zap"

	"eventsv2/internal/cause"
)

// health is the known state of the notifier.
type health struct {
	down    bool
	why     error     // why it is down
	causes  cause.Log // of its being down
	silent  bool      // whether it is down because it did not answer
	trying  bool      // whether try is running
	failing time.Time // when pulls began to fail; zero while they succeed
	failed  time.Time // when a pull last failed
	heeded  time.Time // when a pull last succeeded, with notifications or without
	askAt   time.Time // no pull before this time
	checkAt time.Time // no check before this time, while it has no notifications
}

// A notifier that returns an empty answer or an error at once must not cause a hot
// loop.
const (
	emptyTakes = 50 * time.Millisecond
	emptyWait  = 100 * time.Millisecond
)

// record records the result of one pull.
func (r *Receiver) record(ctx context.Context, err error, n int, took time.Duration) {
	if ctx.Err() != nil {
		return // the caller stopped: the notifier is not the cause
	}
	r.mu.Lock()
	now := time.Now()
	if n > 0 {
		r.heard, r.searchUntil = now, time.Time{}
		r.answered()
	}
	check := false
	if err == nil {
		r.heeded = now
	}
	switch {
	case err != nil:
		r.fail(now, err, took)
	case n == 0 && !r.down:
		r.failing = time.Time{}
		if took < emptyTakes {
			r.askAt = now.Add(emptyWait)
		}
		if check = !now.Before(r.checkAt); check {
			r.checkAt = now.Add(r.config.CheckEvery)
		}
	}
	r.mu.Unlock()
	if check {
		_ = r.check(ctx) // check records the answer
	}
}

// isSilence reports whether an error means that the notifier did not answer.
func isSilence(err error) bool {
	var silence interface{ Timeout() bool }
	return errors.As(err, &silence) && silence.Timeout()
}

// fail records a failed pull. If the notifier did not answer, it has been failing since
// that pull began. The caller holds mu.
func (r *Receiver) fail(now time.Time, err error, took time.Duration) {
	r.failed = now
	r.askAt = now.Add(min(r.config.ProbeEvery, r.config.After/4))
	if r.down {
		r.stillDown(now, err)
		return
	}
	if r.failing.IsZero() {
		r.failing = now
		if isSilence(err) {
			r.failing = now.Add(-took)
		}
	}
	if now.Sub(r.failing) >= r.config.After {
		r.fallBack(now, err)
	}
}

// fallBack begins to search the database for due events. The caller holds mu.
func (r *Receiver) fallBack(now time.Time, err error) {
	r.down, r.failing, r.why = true, now, err
	r.silent = isSilence(err)
	r.askAt = now.Add(r.config.ProbeEvery)
	r.pollAt, r.sweepAt = now, now
	r.causes.Worth(err, true)
	r.config.Logger.Warn("the notifier is down: due events are found in the database until it is back", zap.Error(err))
	r.signal()
}

// stillDown records why a notifier that is down failed again. The caller holds mu.
func (r *Receiver) stillDown(now time.Time, err error) {
	r.why = err
	r.askAt = now.Add(r.config.ProbeEvery)
	if r.causes.Worth(err, false) {
		r.config.Logger.Warn("the notifier is still down, for another reason", zap.Error(err))
	}
}

// answered records that a call of the notifier has succeeded. The caller holds mu.
func (r *Receiver) answered() {
	r.failing = time.Time{}
	if !r.down {
		return
	}
	r.down, r.why = false, nil
	r.askAt = time.Time{}
	r.config.Logger.Info("the notifier answers again: the database is no longer polled")
	r.signal()
}

// check checks the notifier, and records an error.
func (r *Receiver) check(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, r.config.ProbeEvery)
	defer cancel()
	err := r.primary.Check(asking)
	if err == nil || ctx.Err() != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.down {
		r.stillDown(now, err)
	} else {
		r.fallBack(now, err)
	}
	return err
}

// try finds out whether a notifier that was down is back. Its check has to succeed, and a
// pull has to deliver something, or to wait for a while without an error. If it was down
// because it did not answer pulls, it has to answer one: its check may have succeeded all
// the time.
func (r *Receiver) try(ctx context.Context, max int) {
	began := time.Now()
	well := r.check(ctx) == nil
	if well {
		r.mu.Lock()
		r.ask(ctx, max)
		silent := r.silent
		r.mu.Unlock()
		if silent {
			well = r.awaitAnswer(ctx, began)
		} else {
			well = backoff.Sleep(ctx, r.config.ProbeEvery)
		}
	}
	// All at once: a Pull that saw the notifier down and no other try would try it again.
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trying = false
	if well && r.failed.Before(began) {
		r.answered()
	}
	r.signal()
}

// awaitAnswer waits until a pull succeeds or fails, and reports whether it succeeded.
func (r *Receiver) awaitAnswer(ctx context.Context, began time.Time) bool {
	for {
		r.mu.Lock()
		answered, over, changed := !r.heeded.Before(began), !r.failed.Before(began) || r.asking == 0, r.changed
		r.mu.Unlock()
		if answered || over {
			return answered
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Failure returns why the notifier is down, and so why due events are searched for in the
// database. It returns nil while the notifier is not down.
func (r *Receiver) Failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

func (r *Receiver) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}
