package maintenance

import (
	"context"
	"time"

	"eventsv2/internal/backoff"
	"eventsv2/internal/rounds"
)

// readLockTimeoutEvery is about how often a running relay reads the lock timeout: an operator may
// have changed it.
const readLockTimeoutEvery = time.Minute

// heedLockTimeout has the relay know the lock timeout of the database, once it is set and whenever
// it is changed: by that it rests while there is no event. Its statements go by the database's in any case.
func (r *Relay) heedLockTimeout(ctx context.Context, loop *rounds.Loop) {
	defer loop.Ends()
	database, ok := r.store.(interface {
		LockTimeout(ctx context.Context) (timeout time.Duration, set bool, err error)
	})
	unset := sweepEvery // it stays unset until a worker starts
	for ok && ctx.Err() == nil {
		loop.Within(statementTakes)
		try, cancel := context.WithTimeout(ctx, statementTakes)
		timeout, set, err := database.LockTimeout(try)
		cancel()
		if err != nil || !set {
			loop.Within(2 * unset)
			backoff.Sleep(ctx, r.about(unset)) // the other parts log what is wrong with the database
			unset = min(2*unset, readLockTimeoutEvery)
			continue
		}
		r.lockTimeout.Store(int64(timeout))
		loop.Within(2 * readLockTimeoutEvery)
		backoff.Sleep(ctx, r.about(readLockTimeoutEvery))
	}
}
