package sqlstate

import (
	"context"
	"fmt"
	"time"

	"eventsv2/internal/backoff"
)

const (
	// tryTimeout bounds one try of Persist, tryWait is the wait between two.
	tryTimeout = 5 * time.Second
	tryWait    = 200 * time.Millisecond
)

// Persist writes what must not be lost in a short outage of the database: it calls try until that succeeds or is Refused, or
// ctx has ended, and for so long beyond that. Each try has its time also after the end of ctx. An answer may have been
// lost, so try must be idempotent. The error is that of the last try.
func Persist(ctx context.Context, beyond time.Duration, try func(ctx context.Context) error) error {
	lasting := context.WithoutCancel(ctx)
	var ended time.Time
	for ; ; backoff.Sleep(lasting, tryWait) {
		once, cancel := context.WithTimeout(lasting, tryTimeout)
		err := try(once)
		cancel()
		if err == nil || Refused(err) {
			return err
		}
		if ctx.Err() == nil {
			continue
		}
		if ended.IsZero() {
			ended = time.Now()
		}
		if time.Since(ended) >= beyond {
			return fmt.Errorf("%w, and the run may not last longer: %w", err, context.Cause(ctx))
		}
	}
}
