package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// loopback is the only interface that anything here listens on.
const loopback = "127.0.0.1"

// freePort returns a port of the loopback interface that is free at
// the moment. Another program may take it before it is used.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("free port %d: %w", port, err)
	}
	return port, nil
}

// errEnded is the error of a server that ended before it answered.
var errEnded = errors.New("the server ended")

// poll calls ready until it returns nil. It gives up, with the last error of
// ready, when ctx ends, and at once when ended is closed, also while ready
// waits: whatever answers then is not what was started. A nil ended never is.
func poll(ctx context.Context, ended <-chan struct{}, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := make(chan struct{})
	defer func() { cancel(nil); <-watch }()
	go func() {
		defer close(watch)
		select {
		case <-ended:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			select {
			case <-ended:
				return errEnded
			default:
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errEnded) {
				return fmt.Errorf("it did not answer in time: %w (%w)", err, cause)
			}
			return errEnded
		}
	}
}
