package pubsubnotify

import "context"

// pullSlot lets pulls that wait for messages do so one after the other. Google's
// emulator serves two that wait on one subscription at once eight times a second
// each, whatever there is to deliver; one at a time it serves a hundred times as
// fast. The service has no such fault: there, pulls wait side by side.
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
