package worker

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
	"eventsv2/internal/logkey"
)

// sumUpEvery is how often the runs of a worker are summed up in its log.
const sumUpEvery = time.Minute

// tally counts the runs that have ended since it was last taken. It is safe for concurrent use.
type tally struct {
	run, failed, retried atomic.Int64
}

// count counts a run that ended with this label.
func (t *tally) count(label machine.Label) {
	t.run.Add(1)
	switch label {
	case machine.RetryTooMany, machine.FailedForGood:
		t.failed.Add(1)
	case machine.RetryAllowed:
		t.retried.Add(1)
	default:
	}
}

// sumUp logs, once a minute until ctx ends and then once more, what has run since; a minute without
// a run, in which no handler hung either, has no line. It sends no statement, so that it costs an idle worker nothing
// (I12).
func (r *reporter) sumUp(ctx context.Context, occupied func() Slots) {
	ticker := time.NewTicker(sumUpEvery)
	defer ticker.Stop()
	for since := time.Now(); ; since = time.Now() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
		if n, now := r.tally.run.Swap(0), occupied(); n > 0 || now.Hung > 0 {
			var oldest time.Duration
			if now.Busy > 0 {
				oldest = time.Since(now.OldestSince).Round(time.Second)
			}
			r.log.Info("runs that have ended", zap.Int64("run", n), zap.Int64("failed", r.tally.failed.Swap(0)), zap.Int64("retried", r.tally.retried.Swap(0)),
				zap.Int("running", now.Busy), zap.Int("slots", now.Of), zap.Int("hung", now.Hung), zap.Duration("oldest", oldest), zap.Duration(logkey.Duration, time.Since(since).Round(time.Second)))
		}
		if ctx.Err() != nil {
			return
		}
	}
}
