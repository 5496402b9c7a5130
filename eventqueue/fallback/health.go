package fallback

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// health is what is known of the notifier.
type health struct {
	down    bool
	why     error     // it is down
	silent  bool      // it is down because it did not answer
	trying  bool      // whether it is back
	failing time.Time // since when pulls fail; zero while they do not
	failed  time.Time // the last one that did
	heeded  time.Time // the last one that was answered, with anything or nothing
	askAt   time.Time // not to be pulled from before
	checkAt time.Time // not to be checked before, while it has nothing
}

// A notifier that answers at once, though it has nothing, or fails, must not make a
// loop hot.
const (
	emptyTakes = 50 * time.Millisecond
	emptyWait  = 100 * time.Millisecond
)

// record counts the result of one pull.
func (r *Receiver) record(ctx context.Context, err error, n int, took time.Duration) {
	if ctx.Err() != nil {
		return // the caller stopped: the notifier is not the cause
	}
	if n > 0 {
		r.answered()
	}
	r.mu.Lock()
	now := time.Now()
	if n > 0 {
		r.heard, r.searchUntil = now, time.Time{}
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
		_ = r.check(ctx) // it has noted the answer
	}
}

// isSilence reports whether an error means that there was no answer.
func isSilence(err error) bool {
	var silence interface{ Timeout() bool }
	return errors.As(err, &silence) && silence.Timeout()
}

// fail counts a pull that failed. One that was not answered has failed for as long as it
// took. Called with mu held.
func (r *Receiver) fail(now time.Time, err error, took time.Duration) {
	r.failed = now
	r.askAt = now.Add(min(r.config.Probe, r.config.After/4))
	if r.down {
		r.why = err
		r.askAt = now.Add(r.config.Probe)
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

// fallBack begins the time in which the database is asked. Called with mu held.
func (r *Receiver) fallBack(now time.Time, err error) {
	r.down, r.failing, r.why = true, now, err
	r.silent = isSilence(err)
	r.askAt = now.Add(r.config.Probe)
	r.pollAt, r.sweepAt = now, now
	r.config.Logger.Warn("the notifier is down: due events are found in the database until it is back", zap.Error(err))
	r.signal()
}

// answered notes that the notifier has been asked and has not failed.
func (r *Receiver) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = time.Time{}
	if !r.down {
		return
	}
	r.down, r.why = false, nil
	r.askAt = time.Time{}
	r.config.Logger.Info("the notifier answers again: the database is no longer polled")
	r.signal()
}

// check asks the notifier how it is.
func (r *Receiver) check(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, r.config.Probe)
	defer cancel()
	err := r.primary.Check(asking)
	if err == nil || ctx.Err() != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.down {
		r.why = err
		r.askAt = now.Add(r.config.Probe)
	} else {
		r.fallBack(now, err)
	}
	return err
}

// try finds out whether a notifier that was down is back: its check has to succeed, and a
// pull must not be refused, but deliver something or wait for a while. If it was down
// because pulls got no answer, a pull has to be answered: its check succeeded all along.
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
			well = pause(ctx, r.config.Probe)
		}
	}
	r.mu.Lock()
	well = well && r.failed.Before(began)
	r.trying = false
	r.signal()
	r.mu.Unlock()
	if well {
		r.answered()
	}
}

// pause reports false when ctx ends before it is over.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitAnswer reports whether a pull is answered before one fails.
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

// Failure is why due events are found in the database at the moment; nil while the
// notifier delivers.
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
