package worker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"eventsv2/eventqueue"
)

func TestErrorsOfHandlersAreReported(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	for _, c := range []struct {
		err       error
		permanent bool
		wait      time.Duration
		snoozed   bool
	}{
		{err: nil},
		{err: plain},
		{err: fmt.Errorf("at: %w", eventqueue.Permanent(plain)), permanent: true},
		{err: fmt.Errorf("at: %w", eventqueue.Snooze(time.Minute)), wait: time.Minute, snoozed: true},
		{err: eventqueue.Snooze(0), snoozed: true},
		{err: errors.Join(eventqueue.Snooze(time.Minute), eventqueue.Permanent(plain)), permanent: true},
	} {
		if got := eventqueue.IsPermanent(c.err); got != c.permanent {
			t.Errorf("IsPermanent(%v) is %v", c.err, got)
		}
		if wait, snoozed := eventqueue.SnoozeOf(c.err); wait != c.wait || snoozed != c.snoozed {
			t.Errorf("SnoozeOf(%v) is %v, %v", c.err, wait, snoozed)
		}
	}
}
