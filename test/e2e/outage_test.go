package e2e_test

import (
	"context"
	"syscall"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/services"
	"eventsv2/test/testenv"
)

// TestWorkGoesOnWithoutPubSub kills the emulator under a running worker. What is
// emitted then runs all the same; and after the emulator has returned, having
// forgotten everything, the notifier rings again.
func TestWorkGoesOnWithoutPubSub(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	emulator, err := services.Emulator(testenv.Context(t), services.Private())
	if err != nil || emulator.PID == 0 {
		testenv.Missing(t, "an outage of Pub/Sub: %v", err)
	}
	t.Cleanup(func() { _ = emulator.Stop(context.Background()) })
	r := newRigOn(t, emulator.URL, "greet")
	r.start("worker", nil).await("worker started")
	r.start("cron", map[string]string{"RELAY_INTERVAL": "2s"})
	emit := func(n int) {
		events := make([]eventqueue.NewEvent, n)
		for i := range events {
			events[i] = event("greet", `1`)
		}
		r.emit(events...)
	}
	emit(10)
	r.target.await(t, 10)

	if err := syscall.Kill(emulator.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	emit(20)
	r.target.await(t, 30)

	if err := emulator.Restart(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	emit(20)
	r.target.await(t, 50)
	r.awaitSQL("everything has ended", `SELECT count(*) = 0 FROM events_v2`)
}
