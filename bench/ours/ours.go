// Package ours runs the benchmark on this project.
package ours

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/migrations"
	"eventsv2/pubsubnotify"
)

// Notifier names the notifier of our side.
type Notifier string

// The three notifiers.
const (
	InMemory Notifier = "memory"
	Emulator Notifier = "emulator"
	Postgres Notifier = "postgres"
)

// Canvas and Key are those of all events.
var (
	Canvas = eventqueue.CanvasID{0: 1}
	Key    = eventqueue.HandlerKey{Module: "bench", Name: "noop", Modifier: "_"}
)

// Queue is a contest.Queue.
type Queue struct {
	lab         *lab.Lab
	databaseURL string
	pool        *pgxpool.Pool
	store       *pgstore.Store
	notifier    eventqueue.Notifier
	queue       *eventqueue.Queue
}

var _ contest.Queue = (*Queue)(nil)

// Open makes an empty queue. host is the emulator's.
func Open(ctx context.Context, l *lab.Lab, kind Notifier, host string) (*Queue, error) {
	databaseURL, err := l.Database(ctx, func(ctx context.Context, databaseURL string) error {
		_, err := migrations.Up(ctx, databaseURL)
		return err
	})
	if err != nil {
		return nil, err
	}
	q := &Queue{lab: l, databaseURL: databaseURL}
	if err := q.open(ctx, kind, host); err != nil {
		return nil, errors.Join(err, q.Close(ctx))
	}
	return q, nil
}

func (q *Queue) open(ctx context.Context, kind Notifier, host string) (err error) {
	if q.pool, err = pgstore.Open(ctx, q.databaseURL, "bench", contest.Connections); err != nil {
		return err
	}
	q.store = pgstore.New(q.pool)
	if q.notifier, err = openNotifier(ctx, q.pool, kind, host); err != nil {
		return err
	}
	q.queue, err = eventqueue.New(q.store, q.notifier, eventqueue.QueueConfig{PublishTimeout: 10 * time.Second})
	return err
}

var topics atomic.Int64

// openNotifier returns no notifier with an error, so that there is none to close.
func openNotifier(ctx context.Context, pool *pgxpool.Pool, kind Notifier, host string) (notifier eventqueue.Notifier, err error) {
	switch kind {
	case Emulator:
		notifier, err = pubsubnotify.New(ctx, PubSub(host, fmt.Sprintf("bench-%d", topics.Add(1))))
	case Postgres:
		notifier, err = pgnotify.New(pool, pgnotify.Config{})
	default:
		notifier = memnotify.New(memnotify.Config{})
	}
	if err != nil {
		return nil, err
	}
	return notifier, nil
}

func (q *Queue) closeNotifier() error {
	if notifier, ok := q.notifier.(io.Closer); ok { // the one in memory is none
		return notifier.Close()
	}
	return nil
}

// PubSub is a topic and a subscription of one name on the emulator.
func PubSub(host, name string) pubsubnotify.Config {
	return pubsubnotify.Config{ProjectID: "bench", Topic: name, Subscription: name, Create: true, EmulatorHost: host}
}

// Modes of our side only.
const (
	// Spread is Throughput with Names handlers.
	Spread contest.Mode = -1 - iota
	// Hanging is Throughput with handlers that return when they have to stop.
	Hanging
	// Recovering is Throughput where a worker has died that was Hanging.
	Recovering
)

// LockTimeout is that of the modes Hanging and Recovering.
const LockTimeout = 20 * time.Second

// Canvases and Names are how many canvases and handlers the events of EmitSpread have.
const (
	Canvases = 10_000
	Names    = 50
)

// URL implements contest.Queue.
func (q *Queue) URL() string { return q.databaseURL }

func event(number int) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: Canvas, Module: Key.Module, Name: Key.Name, Modifier: Key.Modifier,
		Value: contest.NewValue(number).JSON()}
}

// Emit implements contest.Queue.
func (q *Queue) Emit(ctx context.Context, n int) error { return q.emit(ctx, n, event) }

func (q *Queue) emit(ctx context.Context, n int, event func(number int) eventqueue.NewEvent) error {
	for from := 0; from < n; from += contest.BatchSize {
		events := make([]eventqueue.NewEvent, min(contest.BatchSize, n-from))
		for i := range events {
			events[i] = event(from + i)
		}
		if _, err := q.queue.EmitMany(ctx, events); err != nil {
			return err
		}
	}
	return nil
}

// EmitSpread emits n events of Names handlers on Canvases canvases, which take turns.
func (q *Queue) EmitSpread(ctx context.Context, n int) error {
	return q.emit(ctx, n, func(number int) eventqueue.NewEvent {
		e := event(number)
		e.Canvas = canvas(number % Canvases)
		e.Name = name(number % Names)
		return e
	})
}

// canvas is one of the canvases beside Canvas.
func canvas(n int) (id eventqueue.CanvasID) {
	id[0] = 2
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// name is one of the names, of which the first is that of Key.
func name(n int) string {
	if n == 0 {
		return Key.Name
	}
	return Key.Name + strconv.Itoa(n)
}

// EmitElsewhere emits one event with the given number on another canvas than that of Emit.
func (q *Queue) EmitElsewhere(ctx context.Context, number int) error {
	e := event(number)
	e.Canvas = canvas(number % Canvases)
	_, err := q.queue.Emit(ctx, e)
	return err
}

// Relay makes a relay that publishes through the notifier of the queue.
func (q *Queue) Relay(config maintenance.RelayConfig) (*maintenance.Relay, error) {
	return maintenance.NewRelay(q.store, q.notifier, config)
}

// EmitOne implements contest.Queue.
func (q *Queue) EmitOne(ctx context.Context, number int) error {
	_, err := q.queue.Emit(ctx, event(number))
	return err
}

// Work implements contest.Queue.
func (q *Queue) Work(ctx context.Context, mode contest.Mode) (*contest.Worker, error) {
	return Work(ctx, q.store, q.notifier, q.queue, mode)
}

// The worker's settings where throughput counts.
const (
	concurrency = 4000
	claimBatch  = 1000
)

// Settings are those of the worker for each mode, for the report.
var Settings = fmt.Sprintf("Concurrency %d, ClaimBatch %d; for latency the defaults", concurrency, claimBatch)

func workerConfig(mode contest.Mode) worker.Config {
	switch mode {
	case contest.Latency:
		return worker.Config{}
	default:
		c := worker.Config{Concurrency: concurrency, ClaimBatch: claimBatch, RetainHistory: mode == contest.History}
		if mode == Hanging || mode == Recovering {
			c.LockTimeout = LockTimeout
		}
		return c
	}
}

// HandIn hands in what was counted, which otherwise happens once a minute.
func (q *Queue) HandIn(ctx context.Context) error { return minutes.Of(q.queue).HandIn(ctx) }

// Work starts a worker with no-op handlers.
func Work(ctx context.Context, store *pgstore.Store, notifier eventqueue.Receiver, queue *eventqueue.Queue, mode contest.Mode) (*contest.Worker, error) {
	started := make(chan contest.Start, 1<<16)
	handlers := eventqueue.NewHandlers()
	names := 1
	if mode == Spread {
		names = Names
	}
	for i := range names {
		key := Key
		key.Name = name(i)
		if err := handlers.Register(key, handler(mode, started), eventqueue.Policy{}); err != nil {
			return nil, err
		}
	}
	ended := contest.NewCounter()
	config := workerConfig(mode)
	config.Observe = func(out worker.Outcome) {
		if out.Label == machine.ExecutesToCompletion && out.Err == nil {
			ended.Add(1)
		}
	}
	w, err := worker.New(queue, store, notifier, handlers, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return contest.NewWorker(ended, started, func(context.Context) error {
		stop()
		return <-done
	}), nil
}

func handler(mode contest.Mode, started chan<- contest.Start) eventqueue.Handler {
	switch mode {
	case contest.Latency:
	case Hanging:
		return eventqueue.HandlerFunc(func(ctx context.Context, _ *eventqueue.Run) error { <-ctx.Done(); return ctx.Err() })
	default:
		return eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil })
	}
	return eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		at := time.Now()
		var value contest.Value
		if err := json.Unmarshal(run.Value, &value); err != nil {
			return err
		}
		started <- contest.Start{Number: value.Number, At: at}
		return nil
	})
}

// Close implements contest.Queue.
func (q *Queue) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	errs := []error{q.closeNotifier()}
	if q.pool != nil {
		q.pool.Close()
	}
	return errors.Join(append(errs, q.lab.Drop(ctx, q.databaseURL))...)
}
