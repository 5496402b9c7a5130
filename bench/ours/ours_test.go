package ours

import (
	"context"
	"testing"
)

// TestUnopenedNotifierIsNotClosed: Open closes everything that it has
// opened when it fails.
func TestUnopenedNotifierIsNotClosed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	notifier, err := openNotifier(ctx, nil, Emulator, "127.0.0.1:1")
	if err == nil {
		t.Fatal("a notifier was opened where none is")
	}
	q := &Queue{notifier: notifier}
	if err := q.closeNotifier(); err != nil {
		t.Errorf("closed a notifier that was not opened: %v", err)
	}
}
