package fallback_test

import (
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/memnotify"
)

// TestForwardedEventIsDeliveredOnce: another worker forwards an event each time that it gets its notification.
func TestForwardedEventIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &switchable{Notifier: memnotify.New(memnotify.Config{})}
		r, err := fallback.New(b, &passing{}, fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		pulled := make(chan []eventqueue.Delivery, 1)
		go func() {
			deliveries, err := r.Pull(ctx, 10)
			if err != nil {
				t.Error(err)
			}
			pulled <- deliveries
		}()
		synctest.Wait() // the pull waits for the notifier
		r.Hand(ctx, []eventqueue.Notification{{Event: 7}})
		first := <-pulled
		if len(first) != 1 || first[0].Event != 7 {
			t.Fatalf("pulled %+v", first)
		}
		r.Hand(ctx, []eventqueue.Notification{{Event: 7}, {Event: 8}})
		second, err := r.Pull(ctx, 10)
		if err != nil || len(second) != 1 || second[0].Event != 8 {
			t.Fatalf("while event 7 is in hand, pulled %+v, and %v", second, err)
		}
		if err := r.Requeue(ctx, first, time.Second); err != nil {
			t.Fatal(err)
		}
		again, err := r.Pull(ctx, 10)
		if err != nil || len(again) != 1 || again[0].Event != 7 {
			t.Fatalf("after it was requeued, pulled %+v, and %v", again, err)
		}
		if err := r.Ack(ctx, again); err != nil {
			t.Fatal(err)
		}
		r.Hand(ctx, []eventqueue.Notification{{Event: 7}})
		if third, err := r.Pull(ctx, 10); err != nil || len(third) != 1 || third[0].Event != 7 {
			t.Fatalf("after it was acknowledged, pulled %+v, and %v", third, err)
		}
	})
}
