package maintenance

import (
	"context"
	"time"
)

// A relay that stops has taken notifications that no other relay publishes. It publishes them, or
// marks them as pending again, within these times from the end of its context, whatever hangs. What
// it cannot mark either is found later, by its age.
const (
	// publishAtStop bounds publishing.
	publishAtStop = 2 * time.Second
	// markAtStop bounds marking as pending, after that.
	markAtStop = time.Second
)

// outlive returns a context that ends when by has passed since the end of ctx, and not before.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		unhook()
		cancel()
	}
}
