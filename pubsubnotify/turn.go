package pubsubnotify

import "context"

// turn lets pulls that wait for messages do so one after the other. Google's
// emulator serves two that wait on one subscription at once eight times a second
// each, whatever there is to deliver; one at a time it serves a hundred times as
// fast. The service has no such fault: there, everybody has a turn at all times.
type turn chan struct{}

// newTurn returns nil for the service.
func newTurn(config Config) turn {
	if config.EmulatorHost == "" {
		return nil
	}
	return make(turn, 1)
}

// take blocks until it is the caller's turn, or until ctx ends.
func (t turn) take(ctx context.Context) error {
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

// give ends the turn.
func (t turn) give() {
	if t != nil {
		<-t
	}
}
