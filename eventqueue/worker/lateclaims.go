package worker

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"

	"eventsv2/internal/logkey"
)

// lateClaimsWarned is how many claims in a row may have no answer in time before a worker warns: a
// database that is away for a moment costs one or two.
const lateClaimsWarned = 5

// lateClaims counts claims in a row that had no answer in time. It is safe for concurrent use.
type lateClaims struct{ inARow atomic.Int64 }

// recordLate records the result of a claim. A claim has half of the lock timeout, since a lock that is
// learnt of later has no time left for a run. So a database that is further away than that answers
// no claim of this worker, while all its other calls may succeed: the worker warns of it once, and
// again after a claim was answered.
func (c *claimer) recordLate(ctx context.Context, err error) {
	if err == nil {
		c.late.inARow.Store(0)
		return
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || c.late.inARow.Add(1) != lateClaimsWarned {
		return
	}
	c.log.Warn("no claim is answered in time, so this worker runs no events: a claim may take half of the lock timeout. If the database is slow or far away, "+
		"set LOCK_TIMEOUT of all programs, and eventctl settings set lock-timeout, to at least four times what a claim takes",
		zap.Duration(logkey.LockTimeout, c.config.LockTimeout), zap.Duration(logkey.ClaimTakes, c.config.LockTimeout/2), zap.Int(logkey.Count, lateClaimsWarned))
}
