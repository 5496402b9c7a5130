package rig

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// Canvas is the tenant of most tests.
var Canvas = eventqueue.CanvasID{0xca, 0x17, 15: 1}

// Key is the handler of most tests.
var Key = eventqueue.HandlerKey{Module: "WORKER", Name: "greet", Modifier: "_"}

// Rig is a queue on a database of its own and an in-memory notifier.
type Rig struct {
	T        *testing.T
	Pool     *pgxpool.Pool
	Store    *pgstore.Store
	Notifier *memnotify.Notifier
	Queue    *eventqueue.Queue
	Handlers *eventqueue.Handlers
	Outcomes *Outcomes

	Receiver eventqueue.Receiver // of the workers that are started from now on; at first the notifier

	virtual bool
}

// New makes a rig on a database of its own.
func New(t *testing.T) *Rig {
	t.Helper()
	return NewOn(t, testenv.Pool(t))
}

// NewOn is New on a database of the test.
func NewOn(t *testing.T, pool *pgxpool.Pool) *Rig {
	t.Helper()
	r := &Rig{
		T:        t,
		Pool:     pool,
		Store:    pgstore.New(pool),
		Notifier: memnotify.New(memnotify.Config{}),
		Handlers: eventqueue.NewHandlers(),
		Outcomes: NewOutcomes(),
	}
	r.Receiver = r.Notifier
	r.QueueOn(r.Store, r.Notifier)
	return r
}

// QueueOn makes the queue anew, on a store and a notifier of the test's.
func (r *Rig) QueueOn(store eventqueue.EmitStore, notifier eventqueue.Publisher) {
	r.T.Helper()
	var err error
	if r.Queue, err = eventqueue.New(store, notifier, eventqueue.QueueConfig{Logger: testenv.Logger(r.T)}); err != nil {
		r.T.Fatal(err)
	}
}

// Handle registers a function for key.
func (r *Rig) Handle(f eventqueue.HandlerFunc, policy eventqueue.Policy) {
	r.T.Helper()
	if err := r.Handlers.Register(Key, f, policy); err != nil {
		r.T.Fatal(err)
	}
}

// Quick is a policy without waits between retries.
func Quick() eventqueue.Policy {
	return eventqueue.Policy{Backoff: func(int) time.Duration { return time.Millisecond }, MinSnooze: time.Millisecond}
}

// Start runs a worker until the test ends, or until the returned function is
// called, which waits for it.
func (r *Rig) Start(config worker.Config) (stop func()) {
	r.T.Helper()
	return r.StartOn(r.Store, config)
}

// StartOn is Start on a store of the test's.
func (r *Rig) StartOn(store worker.Store, config worker.Config) (stop func()) {
	r.T.Helper()
	_, stop = r.StartWorker(store, config)
	return stop
}

// StartWorker is StartOn for a test that asks the worker something.
func (r *Rig) StartWorker(store worker.Store, config worker.Config) (w *worker.Worker, stop func()) {
	r.T.Helper()
	w = r.worker(store, config)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			r.T.Errorf("worker: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	r.T.Cleanup(stop)
	return w, stop
}

// worker makes a worker, by default one whose outcomes the rig records.
func (r *Rig) worker(store worker.Store, config worker.Config) *worker.Worker {
	r.T.Helper()
	if config.Observe == nil {
		config.Observe = r.Outcomes.Add
	}
	if !r.virtual { // the second notification of an event in one batch comes again after a lease
		config.Lease = cmp.Or(config.Lease, 5*time.Second)
	}
	if config.Logger == nil {
		config.Logger = testenv.Logger(r.T)
	}
	w, err := worker.New(r.Queue, store, r.Receiver, r.Handlers, config)
	if err != nil {
		r.T.Fatal(err)
	}
	return w
}

// Notified takes all notifications that are ready, and returns how many events they are for. An event may have
// more than one: on a machine that is busy, an emit or a relay that waits for its answer for too long counts as
// unanswered, and what it may have done is notified again.
func (r *Rig) Notified() int {
	r.T.Helper()
	events := map[eventqueue.EventID]bool{}
	for r.Notifier.Ready() > 0 {
		deliveries, err := r.Notifier.Pull(testenv.Context(r.T), 1000)
		if err != nil {
			r.T.Fatal(err)
		}
		for _, d := range deliveries {
			events[d.Event] = true
		}
		if err := r.Notifier.Ack(testenv.Context(r.T), deliveries); err != nil {
			r.T.Fatal(err)
		}
	}
	return len(events)
}

// Event is one for the handler of most tests, with a value.
func (*Rig) Event(value string) eventqueue.NewEvent { return Event(value) }

// Event is one for the handler of most tests, with a value.
func Event(value string) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: Canvas, Module: Key.Module, Name: Key.Name, Modifier: Key.Modifier,
		Value: json.RawMessage(value)}
}

// Emit emits, and fails the test when it cannot.
func (r *Rig) Emit(events ...eventqueue.NewEvent) []eventqueue.EventID {
	r.T.Helper()
	ids, err := r.Queue.EmitMany(testenv.Context(r.T), events)
	if err != nil {
		r.T.Fatal(err)
	}
	return ids
}

// One returns the only value of a query.
func One[T any](r *Rig, sql string, args ...any) T {
	r.T.Helper()
	var v T
	if err := r.Pool.QueryRow(testenv.Context(r.T), sql, args...).Scan(&v); err != nil {
		r.T.Fatalf("%s: %v", sql, err)
	}
	return v
}

// Exec runs a statement.
func (r *Rig) Exec(sql string, args ...any) {
	r.T.Helper()
	if _, err := r.Pool.Exec(testenv.Context(r.T), sql, args...); err != nil {
		r.T.Fatalf("%s: %v", sql, err)
	}
}

// Waiting counts the rows of events_v2.
func (r *Rig) Waiting() int { r.T.Helper(); return One[int](r, `SELECT count(*) FROM events_v2`) }

// Logged counts the rows of event_log with a status.
func (r *Rig) Logged(status string) int {
	r.T.Helper()
	return One[int](r, `SELECT count(*) FROM event_log WHERE status::text = $1`, status)
}

// Outcomes records what workers observe and lets tests wait for it.
type Outcomes struct {
	Mu      sync.Mutex
	All     []worker.Outcome
	Counts  map[machine.Label]int
	Changed chan struct{}
}

// NewOutcomes makes a list that nothing has been added to.
func NewOutcomes() *Outcomes {
	return &Outcomes{Counts: map[machine.Label]int{}, Changed: make(chan struct{})}
}

// Add is for worker.Config.Observe.
func (o *Outcomes) Add(out worker.Outcome) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.All = append(o.All, out)
	o.Counts[out.Label]++
	close(o.Changed)
	o.Changed = make(chan struct{})
}

// List returns the outcomes so far.
func (o *Outcomes) List() []worker.Outcome {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return append([]worker.Outcome(nil), o.All...)
}

// Count is how often a label was observed.
func (o *Outcomes) Count(label machine.Label) int {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return o.Counts[label]
}

// Await waits until a label was observed n times.
func (o *Outcomes) Await(t *testing.T, label machine.Label, n int) {
	t.Helper()
	ctx := testenv.Context(t)
	for {
		o.Mu.Lock()
		changed := o.Changed
		o.Mu.Unlock()
		if got := o.Count(label); got >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("waited for %d × %s, got %d; all outcomes: %v", n, label, o.Count(label), o.Summary())
		}
	}
}

// Summary counts the outcomes by their labels.
func (o *Outcomes) Summary() map[string]int {
	sum := map[string]int{}
	for _, out := range o.List() {
		sum[fmt.Sprintf("%s→%s", out.Label, out.To)]++
	}
	return sum
}

// Relay makes a relay on the store and the notifier of the rig.
func (r *Rig) Relay(config maintenance.RelayConfig) *maintenance.Relay {
	r.T.Helper()
	config.Logger = testenv.Logger(r.T)
	relay, err := maintenance.NewRelay(r.Store, r.Notifier, config)
	if err != nil {
		r.T.Fatal(err)
	}
	return relay
}

// RunToItsBound runs a worker until it has stopped
// itself.
func (r *Rig) RunToItsBound(config worker.Config) {
	r.T.Helper()
	ctx := testenv.Context(r.T)
	if err := r.worker(r.Store, config).Run(ctx); err != nil || ctx.Err() != nil {
		r.T.Fatalf("the worker ended with %v, its context with %v", err, ctx.Err())
	}
}

// Copies are n events of the handler of most tests.
func (r *Rig) Copies(n int) []eventqueue.NewEvent {
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	return events
}

// EdgesOfDelays are durations in nanoseconds where arithmetic could go wrong.
func EdgesOfDelays() []int64 {
	return []int64{
		0, 1, 999, 1000, 1001, int64(100*time.Millisecond) - 1, int64(100 * time.Millisecond), int64(900 * time.Millisecond),
		int64(time.Second) - 1, int64(time.Second) + 1, int64(10*time.Second) - 1, int64(10 * time.Second),
		int64(eventqueue.MaxRequeue) - 1, int64(eventqueue.MaxRequeue), int64(eventqueue.MaxRequeue) + 1,
		int64(eventqueue.MaxWait), math.MaxInt64 / 2, math.MaxInt64 - 999, math.MaxInt64 - 1, math.MaxInt64,
	}
}

// Changer makes a Changer on the store and the queue of the rig.
func (r *Rig) Changer() *operate.Changer {
	r.T.Helper()
	changer, err := operate.NewChanger(r.Store, r.Queue)
	if err != nil {
		r.T.Fatal(err)
	}
	return changer
}

// Requeue makes events run now.
func (r *Rig) Requeue(ids ...eventqueue.EventID) []operate.Changed {
	r.T.Helper()
	results, err := r.Changer().Requeue(testenv.Context(r.T), ids...)
	if err != nil {
		r.T.Fatal(err)
	}
	return results
}

// Claims claims events for a worker that never does anything after that.
func (r *Rig) Claims(ids ...eventqueue.EventID) []worker.Completion {
	r.T.Helper()
	found, err := r.Store.Claim(testenv.Context(r.T), ids, Known, 0)
	if err != nil {
		r.T.Fatal(err)
	}
	var ends []worker.Completion
	for _, f := range found {
		if f.Facts.Claimed {
			ends = append(ends, worker.Completion{Claim: worker.Claim{Event: f.Event.ID, Attempt: f.Attempt}, Label: machine.ExecutesToCompletion})
		}
	}
	return ends
}

// Row has the columns of an event that a requeue may change.
func (r *Rig) Row(id eventqueue.EventID) string {
	r.T.Helper()
	return One[string](r, `SELECT concat_ws(' ', CASE WHEN locked_at IS NULL THEN 'free' ELSE 'locked' END,
		CASE WHEN delay_until <= clock_timestamp() THEN 'due' ELSE 'delayed' END, 'retries', retries, 'attempts', attempts,
		CASE WHEN notified_at IS NULL THEN 'pending' ELSE 'notified' END) FROM events_v2 WHERE id = $1`, id)
}

// Rules makes the Rules of the rig.
func (r *Rig) Rules() *operate.Rules {
	r.T.Helper()
	rules, err := operate.NewRules(r.Store, r.Queue)
	if err != nil {
		r.T.Fatal(err)
	}
	return rules
}

// AwaitBlockedOn waits until some session waits for a lock on a table.
func (r *Rig) AwaitBlockedOn(table, mode string) {
	r.T.Helper()
	testenv.Eventually(r.T, "a session waits for "+mode+" on "+table, func() bool {
		return One[bool](r, `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = $1::regclass AND mode = $2 AND NOT granted)`, table, mode)
	})
}

// Scope is the scope of the handler of most tests.
var Scope = eventqueue.Scope{Canvas: Canvas, Module: Key.Module, Name: Key.Name}

// InOrder makes an event with an ordering key.
func (r *Rig) InOrder(orderingKey, value string) eventqueue.NewEvent {
	e := r.Event(value)
	e.OrderingKey = orderingKey
	return e
}

// Known has the handler of most tests.
var Known = eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{Key}}

// NeedStatements skips where the server does not count statements.
func (r *Rig) NeedStatements() {
	r.T.Helper()
	if _, err := r.Pool.Exec(testenv.Context(r.T), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT count(*) FROM pg_stat_statements`); err != nil {
		testenv.Missing(r.T, "what a check costs: the server has no pg_stat_statements: %v", err)
	}
}
