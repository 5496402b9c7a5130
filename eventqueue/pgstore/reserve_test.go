package pgstore_test

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/zap"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// TestWorkersAreNotifiedOfLostEvents (I13, I19) on the connection of their heartbeats, and can
// tell it from what could not be published.
func TestWorkersAreNotifiedOfLostEvents(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	store := pgstore.New(pool)
	reserve := store.Reserve(worker.Registration{Number: 7}, zap.NewNop())
	defer reserve.Close()
	ctx, stop := context.WithCancel(testenv.Context(t))
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop()
	reported := make(chan bool)
	listening.Go(func() {
		_ = pgstore.Listen(ctx, reserve, func(lost bool) { // it ends with ctx
			select {
			case reported <- lost:
			case <-ctx.Done():
			}
		})
	})
	await := func(what string, want bool) {
		t.Helper()
		select {
		case lost := <-reported:
			if lost != want {
				t.Fatalf("%s: told of what is lost = %t", what, lost)
			}
		case <-ctx.Done():
			t.Fatalf("%s: nobody was told", what)
		}
	}
	await("it begins to listen", false)
	if err := store.ReportLost(ctx); err != nil {
		t.Fatal(err)
	}
	await("something is lost", true)
	if _, err := pool.Exec(ctx, `NOTIFY events_v2_unpublished`); err != nil {
		t.Fatal(err)
	}
	await("a publish failed", false)
}
