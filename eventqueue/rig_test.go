package eventqueue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// canvas is the tenant of most tests.
var canvas = eventqueue.CanvasID{0xca, 0x17, 15: 1}

// key is the handler of most tests.
var key = eventqueue.HandlerKey{Module: "WORKER", Name: "greet", Modifier: "_"}

// rig is a queue on a database of its own and an in-memory doorbell.
type rig struct {
	t        *testing.T
	pool     *pgxpool.Pool
	store    *pgstore.Store
	notifier *memnotify.Notifier
	queue    *eventqueue.Queue
	handlers *eventqueue.Handlers
	outcomes *outcomes
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, testenv.Pool(t))
}

func newRigOn(t *testing.T, pool *pgxpool.Pool) *rig {
	t.Helper()
	r := &rig{
		t:        t,
		pool:     pool,
		store:    pgstore.New(pool),
		notifier: memnotify.New(memnotify.Config{}),
		handlers: eventqueue.NewHandlers(),
		outcomes: newOutcomes(),
	}
	var err error
	r.queue, err = eventqueue.New(r.store, r.notifier, eventqueue.QueueConfig{Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// handle registers a function for key.
func (r *rig) handle(f eventqueue.HandlerFunc, policy eventqueue.Policy) {
	r.t.Helper()
	if err := r.handlers.Register(key, f, policy); err != nil {
		r.t.Fatal(err)
	}
}

// quick is a policy without waits between retries.
func quick() eventqueue.Policy {
	return eventqueue.Policy{Backoff: func(int) time.Duration { return time.Millisecond }}
}

// start runs a worker until the test ends, or until the returned function is
// called, which waits for it.
func (r *rig) start(config eventqueue.WorkerConfig) (stop func()) {
	r.t.Helper()
	if config.Observe == nil {
		config.Observe = r.outcomes.add
	}
	if config.Logger == nil {
		config.Logger = testenv.Logger(r.t)
	}
	worker, err := eventqueue.NewWorker(r.queue, r.store, r.notifier, r.handlers, config)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := worker.Run(ctx); err != nil {
			r.t.Errorf("worker: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) event(value string) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier,
		Value: json.RawMessage(value)}
}

func (r *rig) emit(events ...eventqueue.NewEvent) []eventqueue.EventID {
	r.t.Helper()
	ids, err := r.queue.EmitMany(testenv.Context(r.t), events)
	if err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// one returns the only value of a query.
func one[T any](r *rig, sql string, args ...any) T {
	r.t.Helper()
	var v T
	if err := r.pool.QueryRow(testenv.Context(r.t), sql, args...).Scan(&v); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(testenv.Context(r.t), sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// waiting counts the rows of events_v2.
func (r *rig) waiting() int { r.t.Helper(); return one[int](r, `SELECT count(*) FROM events_v2`) }

// logged counts the rows of event_log with a status.
func (r *rig) logged(status string) int {
	r.t.Helper()
	return one[int](r, `SELECT count(*) FROM event_log WHERE status::text = $1`, status)
}

// outcomes records what workers observe and lets tests wait for it.
type outcomes struct {
	mu      sync.Mutex
	all     []eventqueue.Outcome
	counts  map[machine.Label]int
	changed chan struct{}
}

func newOutcomes() *outcomes {
	return &outcomes{counts: map[machine.Label]int{}, changed: make(chan struct{})}
}

func (o *outcomes) add(out eventqueue.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, out)
	o.counts[out.Label]++
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *outcomes) list() []eventqueue.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]eventqueue.Outcome(nil), o.all...)
}

// count is how often a label was observed.
func (o *outcomes) count(label machine.Label) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[label]
}

// await waits until a label was observed n times.
func (o *outcomes) await(t *testing.T, label machine.Label, n int) {
	t.Helper()
	ctx := testenv.Context(t)
	for {
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if got := o.count(label); got >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("waited for %d × %s, got %d; all outcomes: %v", n, label, o.count(label), o.summary())
		}
	}
}

func (o *outcomes) summary() map[string]int {
	sum := map[string]int{}
	for _, out := range o.list() {
		sum[fmt.Sprintf("%s→%s", out.Label, out.To)]++
	}
	return sum
}

func (r *rig) relay(config eventqueue.RelayConfig) *eventqueue.Relay {
	r.t.Helper()
	config.Logger = testenv.Logger(r.t)
	relay, err := eventqueue.NewRelay(r.store, r.notifier, config)
	if err != nil {
		r.t.Fatal(err)
	}
	return relay
}
