package pubsubnotify

import "context"

// pullSlot makes pulls that wait for messages wait one after the other. If two pulls
// wait on one subscription at once, Google's emulator answers each only eight times a
// second, even if it has messages; a single one is a hundred times as fast. The service
// does not have this fault, and there pulls wait concurrently.
type pullSlot chan struct{}

// newPullSlot returns nil for the service.
func newPullSlot(config Config) pullSlot {
	if config.EmulatorHost == "" {
		return nil
	}
	return make(pullSlot, 1)
}

// take blocks until the slot is free, or until ctx ends.
func (t pullSlot) take(ctx context.Context) error {
	if t == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give frees the slot.
func (t pullSlot) give() {
	if t != nil {
		<-t
	}
}
