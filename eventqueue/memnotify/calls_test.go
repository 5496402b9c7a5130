package memnotify_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
)

func notifications(ids ...int64) []eventqueue.Notification {
	made := make([]eventqueue.Notification, len(ids))
	for i, id := range ids {
		made[i] = eventqueue.Notification{Event: eventqueue.EventID(id)}
	}
	return made
}

func publish(t testing.TB, n *memnotify.Notifier, ids ...int64) {
	t.Helper()
	if err := n.Publish(t.Context(), notifications(ids...)); err != nil {
		t.Errorf("Publish = %v, want nil", err)
	}
}

func pullOne(t testing.TB, n *memnotify.Notifier) eventqueue.Delivery {
	t.Helper()
	deliveries, err := n.Pull(t.Context(), 1)
	if err != nil || len(deliveries) != 1 {
		t.Errorf("Pull(1) = %d deliveries, %v, want one", len(deliveries), err)
		return eventqueue.Delivery{}
	}
	return deliveries[0]
}

func ack(t testing.TB, n *memnotify.Notifier, deliveries ...eventqueue.Delivery) {
	t.Helper()
	if err := n.Ack(t.Context(), deliveries); err != nil {
		t.Errorf("Ack = %v, want nil", err)
	}
}

func requeue(t testing.TB, n *memnotify.Notifier, delivery eventqueue.Delivery, after time.Duration) {
	t.Helper()
	requeueAll(t, n, []eventqueue.Delivery{delivery}, after)
}

func requeueAll(t testing.TB, n *memnotify.Notifier, deliveries []eventqueue.Delivery, after time.Duration) {
	t.Helper()
	if err := n.Requeue(t.Context(), deliveries, after); err != nil {
		t.Errorf("Requeue(%v) = %v, want nil", after, err)
	}
}
