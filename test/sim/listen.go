package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// listener is a process that listens on a channel.
type listener struct {
	owner   string
	channel string
	heard   chan string
	cut     chan struct{}
}

func (l *listener) notify(payload string) {
	select {
	case l.heard <- payload:
	default: // several are as good as one
	}
}

// listen calls wake at once and after each notification, until ctx ends or the process is disconnected.
func (t *tables) listen(ctx context.Context, owner, channel string, wake func(payload string)) error {
	l := &listener{owner: owner, channel: channel, heard: make(chan string, 8), cut: make(chan struct{})}
	t.mu.Lock()
	t.listeners = append(t.listeners, l)
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.listeners = slices.DeleteFunc(t.listeners, func(other *listener) bool { return other == l })
	}()
	wake("") // for commits before this call
	for {
		select {
		case payload := <-l.heard:
			wake(payload)
		case <-l.cut:
			return fmt.Errorf("wait for a wake-up: %w", errDisconnected)
		case <-ctx.Done():
			return fmt.Errorf("wait for a wake-up: %w", ctx.Err())
		}
	}
}

var errDisconnected = errors.New("the connection is gone")
