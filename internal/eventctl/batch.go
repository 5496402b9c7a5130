package eventctl

import (
	"context"
	"errors"
	"time"
)

// batchTimeout bounds one transaction of a command that has many.
const batchTimeout = 2 * time.Minute

// toTheEnd runs one batch to its end even if ctx ends meanwhile, so that its result is
// known. If ctx has ended before, the batch does not begin.
func toTheEnd[T any](ctx context.Context, batch func(ctx context.Context) (T, error)) (none T, err error) {
	if ctx.Err() != nil {
		return none, errors.New("interrupted")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	return batch(ctx)
}
