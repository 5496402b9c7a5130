package maintenance

import (
	"context"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/backoff"
	"eventsv2/internal/rounds"
)

// readLockTimeoutEvery is about how often a running relay reads the lock timeout: an operator may
// have changed it.
const readLockTimeoutEvery = time.Minute

// heedLockTimeout has the relay use the lock timeout of the database, once it is set and whenever
// it is changed. It logs once if the relay was configured with another.
func (r *Relay) heedLockTimeout(ctx context.Context, loop *rounds.Loop) {
	defer loop.Ends()
	database, ok := r.store.(interface {
		LockTimeout(ctx context.Context) (timeout time.Duration, set bool, err error)
	})
	warned := false
	for ok && ctx.Err() == nil {
		loop.Within(statementTakes)
		try, cancel := context.WithTimeout(ctx, statementTakes)
		timeout, set, err := database.LockTimeout(try)
		cancel()
		if err != nil || !set {
			loop.Within(2 * sweepEvery)
			backoff.Sleep(ctx, r.about(sweepEvery)) // the other parts log what is wrong with the database
			continue
		}
		r.lockTimeout.Store(int64(timeout))
		if r.ownLockTimeout != 0 && r.ownLockTimeout != timeout && !warned {
			warned = true
			r.log.Warn("the relay's LockTimeout is not the database's, which counts: leave it out, or change the database's with eventctl settings set lock-timeout",
				zap.Duration("lock_timeout", r.ownLockTimeout), zap.Duration("database", timeout))
		}
		loop.Within(2 * readLockTimeoutEvery)
		backoff.Sleep(ctx, r.about(readLockTimeoutEvery))
	}
}
