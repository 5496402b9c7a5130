package eventqueue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// statements counts, by Postgres' own account, what was sent to the rig's
// database, but for the counting itself.
func (r *rig) statements() int {
	r.t.Helper()
	return one[int](r, `SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_statements%'`)
}

// needStatements skips where the server does not count statements.
func (r *rig) needStatements() {
	r.t.Helper()
	if _, err := r.pool.Exec(testenv.Context(r.t), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT count(*) FROM pg_stat_statements`); err != nil {
		r.t.Skipf("SKIPPED, NOT TESTED: what a worker costs: the server has no pg_stat_statements: %v", err)
	}
}

func TestAnIdleWorkerSendsNoStatement(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.needStatements()
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	beat := 10 * time.Millisecond
	ticks := &countingReceiver{Receiver: r.notifier, pulled: make(chan struct{}, 100)}
	config := eventqueue.WorkerConfig{Heartbeat: beat, Heartbeats: r.store, Observe: r.outcomes.add}
	worker, err := eventqueue.NewWorker(r.queue, r.store, ticks, r.handlers, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	r.emit(r.event(`1`))
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
	<-ticks.pulled

	// What was under way when the event ended may still be counted, so there must
	// be one stretch of a hundred heartbeats without a statement; a worker that
	// sends something now and then has none.
	for range 3 {
		before := r.statements()
		idle := time.NewTimer(100 * beat)
		<-idle.C
		if r.statements() == before {
			return
		}
	}
	t.Errorf("an idle worker sends statements")
}

// countingReceiver tells when a pull begins.
type countingReceiver struct {
	eventqueue.Receiver
	pulled chan struct{}
}

func (c *countingReceiver) Pull(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	select {
	case c.pulled <- struct{}{}:
	default:
	}
	return c.Receiver.Pull(ctx, max)
}

func TestADrainedEventCostsAFewHundredthsOfAStatement(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.needStatements()
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	events := make([]eventqueue.NewEvent, 10_000)
	for i := range events {
		events[i] = r.event(`{"n": 1}`)
	}
	r.emit(events...)
	before := r.statements()
	stop := r.start(eventqueue.WorkerConfig{Concurrency: 2000})
	r.outcomes.await(t, machine.ExecutesToCompletion, len(events))
	stop()
	perEvent := float64(r.statements()-before) / float64(len(events))
	t.Logf("%.4f statements per drained event", perEvent)
	if perEvent > 0.02 {
		t.Errorf("%.4f statements per drained event, more than 0.02", perEvent)
	}
}
