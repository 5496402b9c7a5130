package memnotify_test

import (
	"context"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
)

// BenchmarkMillion drains a backlog of a million notifications, a tenth of which
// is requeued once, in batches of 500. One iteration is the whole backlog.
func BenchmarkMillion(b *testing.B) {
	const backlog, batch = 1_000_000, 500
	ctx := context.Background()
	published := make([]eventqueue.Notification, eventqueue.MaxPublish)
	for i := range published {
		published[i].Event = eventqueue.EventID(i + 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := memnotify.New(memnotify.Config{})
		for range backlog / len(published) {
			if err := n.Publish(ctx, published); err != nil {
				b.Fatal(err)
			}
		}
		for i := 0; n.Len() > 0; i++ {
			deliveries, err := n.Pull(ctx, batch)
			if err != nil {
				b.Fatal(err)
			}
			if i%10 == 0 {
				err = n.Requeue(ctx, deliveries, time.Nanosecond)
			} else {
				err = n.Ack(ctx, deliveries)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(backlog)*float64(b.N)/b.Elapsed().Seconds(), "notifications/s")
}
