package ours

import (
	"context"
	"testing"
)

// TestADoorbellThatCannotBeOpenedIsNotClosed: Open closes what there is when it
// fails.
func TestADoorbellThatCannotBeOpenedIsNotClosed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	bell, err := openBell(ctx, nil, Emulator, "127.0.0.1:1")
	if err == nil {
		t.Fatal("a doorbell was opened where none is")
	}
	q := &Queue{bell: bell}
	if err := q.closeBell(); err != nil {
		t.Errorf("closed what is not there: %v", err)
	}
}
