package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

// TestWorkersCountWebhooksAndCronPrunesThem, each in its role.
func TestWorkersCountWebhooksAndCronPrunesThem(t *testing.T) {
	t.Parallel()
	r := newRoleRig(t)
	ctx := testenv.Context(t)
	counter := received.NewCounter(pgsession.On(r.as("worker").pool, ""), func(time.Duration) time.Duration { return 0 }, testenv.Logger(t))
	for range 2 { // the second time there are rows
		counter.Observe(webhook.Source{Name: "shop"}, webhook.BadTime, errors.New("it is late"))
		if err := counter.HandIn(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := received.NewReader("", r.as("reader").pool).Sources(ctx); err != nil {
		t.Error(err)
	}
	r.exec(`UPDATE webhook_minutes SET minute = minute - interval '30 days'`)
	if deleted, err := r.as("cron").store.PruneMinutes(ctx, time.Hour, time.Hour, 10); err != nil || deleted < 1 {
		t.Errorf("PruneMinutes: %d, %v", deleted, err)
	}
}
