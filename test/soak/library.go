package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/caarlos0/env/v11"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

// roleVariable makes this program one that embeds the queue, as any program may.
// A process of its own can be frozen, and tells how many goroutines it has.
const (
	roleVariable = "SOAK_ROLE"
	roleLibrary  = "library"
)

// runLibrary is a worker, a relay and a cron checker in one process. It is
// configured like cmd/worker, and writes what it does to its standard output.
func runLibrary(ctx context.Context, stdout, stderr io.Writer) int {
	config, log, err := service.Setup(env.ToMap(os.Environ()), stderr)
	if err == nil {
		err = embed(ctx, config, &notes{out: stdout}, log)
	}
	if err != nil {
		return fail(stderr, err, exitFailed)
	}
	return exitOK
}

// embed runs the parts until ctx ends.
func embed(ctx context.Context, config service.Config, out *notes, log *zap.Logger) (err error) {
	resources, err := service.Open(ctx, config, "soak-library", log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resources.Close()) }()
	heartbeats, err := pgstore.Open(ctx, config.DatabaseURL, "soak-library-heartbeat", 1)
	if err != nil {
		return err
	}
	defer heartbeats.Close()
	worker, err := newWorker(config, resources, pgstore.New(heartbeats), out, log)
	if err != nil {
		return err
	}
	relay, err := eventqueue.NewRelay(resources.Store, resources.Notifier, eventqueue.RelayConfig{
		Interval: config.RelayInterval, Quiet: config.RelayQuiet, LockTimeout: config.LockTimeout, Logger: log})
	if err != nil {
		return err
	}
	checker, err := cronchecker.New(cronchecker.NewPostgres(resources.Pool, resources.Queue), cronchecker.Config{Logger: log})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return worker.Run(ctx) })
	group.Go(func() error { return relay.Run(ctx) })
	group.Go(func() error { return checker.Run(ctx) })
	group.Go(func() error { return out.measure(ctx) })
	return group.Wait()
}

func newWorker(config service.Config, r *service.Resources, heartbeats eventqueue.ClaimStore, out *notes, log *zap.Logger) (*eventqueue.Worker, error) {
	retries := maxRetries
	handlers := eventqueue.NewHandlers()
	for _, key := range handlerKeys() {
		policy := eventqueue.Policy{Timeout: handlerTimeout, MaxRetries: &retries,
			Backoff: eventqueue.Exponential(backoffBase, backoffMax)}
		if err := handlers.Register(key, eventqueue.HandlerFunc(out.handle), policy); err != nil {
			return nil, err
		}
	}
	receiver, err := fallback.New(r.Notifier, r.Store, fallback.Config{LockTimeout: config.LockTimeout, Logger: log})
	if err != nil {
		return nil, err
	}
	return eventqueue.NewWorker(r.Queue, r.Store, receiver, handlers, eventqueue.WorkerConfig{
		Concurrency: config.Concurrency, ClaimBatch: config.ClaimBatch, LockTimeout: config.LockTimeout,
		Heartbeat: config.Heartbeat, GracePeriod: config.GracePeriod, Heartbeats: heartbeats, Logger: log,
	})
}

// notes are what the process tells the soak, line by line: what was done, and
// how large it is. The standard output is a pipe whose reader the soak is; once
// that is dead, the first write ends the process.
type notes struct {
	mu  sync.Mutex
	out io.Writer
}

// The first word of a line.
const (
	noteDone  = "done"  // module, value
	noteStats = "stats" // goroutines, bytes of the heap in use after the last collection
)

func (n *notes) write(format string, args ...any) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err := fmt.Fprintf(n.out, format+"\n", args...)
	return err
}

// handle does one event; what it has done is written before it returns.
func (n *notes) handle(ctx context.Context, run *eventqueue.Run) error {
	if err := perform(ctx, run.Name, run.Retries); err != nil {
		return err
	}
	return n.write("%s %s %s", noteDone, run.Module, run.Value)
}

// measureEvery is the time between two measurements.
const measureEvery = time.Second

func (n *notes) measure(ctx context.Context) error {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for pause(ctx, measureEvery) {
		metrics.Read(heap)
		if err := n.write("%s %d %d", noteStats, runtime.NumGoroutine(), heap[0].Value.Uint64()); err != nil {
			return err
		}
	}
	return nil
}
