package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
	"eventsv2/test/chaos/journal"
	"eventsv2/test/chaos/task"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx, env.ToMap(os.Environ())); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "worker:", err) // nowhere else to say it
		os.Exit(1)
	}
}

func run(ctx context.Context, environment map[string]string) (err error) {
	config, log, err := service.Setup(environment, os.Stderr)
	if err != nil {
		return err
	}
	notes, err := journal.Open(environment["CHAOS_JOURNAL"])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, notes.Close()) }()
	resources, err := service.Open(ctx, config, "chaos-worker", log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resources.Close()) }()
	heartbeats, err := pgstore.Open(ctx, config.DatabaseURL, "chaos-worker", 1)
	if err != nil {
		return err
	}
	defer heartbeats.Close()
	worker, err := newWorker(config, resources, pgstore.New(heartbeats), notes, log)
	if err != nil {
		return err
	}
	return service.RunWithHealth(ctx, config.Port, resources.Ready, log, func(ctx context.Context) error {
		log.Info("worker started")
		defer log.Info("worker stopped")
		watch, stopWatch := context.WithCancel(context.WithoutCancel(ctx))
		group, _ := errgroup.WithContext(ctx)
		group.Go(func() error { return watchStandstills(watch, notes) })
		group.Go(func() error {
			defer stopWatch()
			return worker.Run(ctx)
		})
		return group.Wait()
	})
}

func newWorker(config service.Config, resources *service.Resources, heartbeats eventqueue.ClaimStore, notes *journal.Writer, log *zap.Logger) (*eventqueue.Worker, error) {
	handlers := eventqueue.NewHandlers()
	retries := task.MaxRetries
	for _, h := range task.Handlers() {
		policy := eventqueue.Policy{
			Timeout: h.Timeout, MaxRetries: &retries,
			Backoff: eventqueue.Exponential(task.BackoffBase, task.BackoffMax),
		}
		if err := handlers.Register(h.Key, &obedient{notes: notes}, policy); err != nil {
			return nil, err
		}
	}
	receiver, err := fallback.New(resources.Notifier, resources.Store, fallback.Config{LockTimeout: config.LockTimeout, Logger: log})
	if err != nil {
		return nil, err
	}
	return eventqueue.NewWorker(resources.Queue, resources.Store, receiver, handlers, eventqueue.WorkerConfig{
		Concurrency: config.Concurrency,
		ClaimBatch:  config.ClaimBatch,
		LockTimeout: config.LockTimeout,
		Heartbeat:   config.Heartbeat,
		GracePeriod: config.GracePeriod,
		KeepHistory: config.KeepHistory,
		Heartbeats:  heartbeats,
		Logger:      log,
	})
}

// How often the process looks at the clock, and how long a gap counts as
// standing still: much less than a lock lasts.
const (
	lookEvery  = 100 * time.Millisecond
	standstill = time.Second
)

// watchStandstills notes when the process did not run: it was stopped, or the
// machine had no time for it.
func watchStandstills(ctx context.Context, notes *journal.Writer) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		now := time.Now()
		if now.Sub(last) > standstill {
			if err := notes.Still(journal.Still{From: last, To: now}); err != nil {
				return err
			}
		}
		last = now
	}
}
