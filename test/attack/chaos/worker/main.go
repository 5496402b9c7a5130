package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "worker:", err) // nowhere else to say it
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	config, err := service.FromEnv()
	if err != nil {
		return err
	}
	config.Name, config.NoRelay, config.NoCron, config.NoPruner = "chaos-worker", true, true, true
	notes, err := journal.Open(os.Getenv("CHAOS_JOURNAL"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, notes.Close()) }()
	watch, stopWatch := context.WithCancel(context.WithoutCancel(ctx))
	group, _ := errgroup.WithContext(ctx)
	group.Go(func() error { return watchStandstills(watch, notes) })
	group.Go(func() error {
		defer stopWatch()
		return service.Run(ctx, config, func(s *service.Service) error { return register(s, notes) })
	})
	return group.Wait()
}

func register(s *service.Service, notes *journal.Writer) error {
	retries := task.MaxRetries
	for _, h := range task.Handlers() {
		policy := eventqueue.Policy{
			Timeout: h.Timeout, MaxRetries: &retries,
			Backoff: eventqueue.Exponential(task.BackoffBase, task.BackoffMax),
		}
		if err := s.Register(h.Key, &obedient{notes: notes}, policy); err != nil {
			return err
		}
	}
	return nil
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
