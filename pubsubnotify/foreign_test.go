package pubsubnotify

import (
	"errors"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
)

// TestNotificationsOfAnotherQueueGoBack to the subscription, so that the other queue gets them; those that say nothing of their queue are the queue's own.
func TestNotificationsOfAnotherQueueGoBack(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	core, logs := observer.New(zapcore.WarnLevel)
	config := fakeConfig(server)
	config.Logger = zap.New(core)
	one, other := open(t, config), open(t, fakeConfig(server))
	ctx := testContext(t)
	if err := other.Publish(ctx, []eventqueue.Notification{notification(1)}); err != nil { // as by an older version
		t.Fatal(err)
	}
	one.SetQueue("one")
	other.SetQueue("other")
	if err := other.Publish(ctx, []eventqueue.Notification{notification(2)}); err != nil {
		t.Fatal(err)
	}
	if err := one.Publish(ctx, []eventqueue.Notification{notification(3)}); err != nil {
		t.Fatal(err)
	}
	take := func(n *Notifier, want ...eventqueue.EventID) {
		t.Helper()
		wanted := map[eventqueue.EventID]bool{}
		for _, id := range want {
			wanted[id] = true
		}
		for len(wanted) > 0 {
			deliveries, err := n.Pull(ctx, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range deliveries {
				if !wanted[d.Event] {
					t.Fatalf("event %d was delivered", d.Event)
				}
				delete(wanted, d.Event)
			}
			if err := n.Ack(ctx, deliveries); err != nil {
				t.Fatal(err)
			}
		}
	}
	shared := new(ForeignError)
	take(one, 1, 3)
	for one.ForeignError() == nil { // it may have come with the others, or comes now
		if deliveries, err := one.Pull(ctx, 10); err != nil || len(deliveries) > 0 {
			t.Fatalf("Pull = %v, %v", deliveries, err)
		}
	}
	if err := one.ForeignError(); !errors.As(err, &shared) || shared.Queue != "other" || shared.Count < 1 {
		t.Errorf("ForeignError = %v", err)
	}
	if n := logs.FilterMessage("this subscription has notifications of another queue").Len(); n != 1 {
		t.Errorf("the log says it %d times, want once", n)
	}
	take(other, 2)
	if err := other.ForeignError(); err != nil {
		t.Errorf("ForeignError = %v of the one that pulled last", err)
	}
}
