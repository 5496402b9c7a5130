package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/service"
	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/command"
	"eventsv2/test/programs"
)

func main() {
	command.Main(func(ctx context.Context, _ []string, _, stderr io.Writer) int {
		if err := run(ctx); err != nil {
			return command.Fail("worker", err, command.ExitFailed, stderr)
		}
		return command.ExitOK
	})
}

func run(ctx context.Context) (err error) {
	config, err := service.FromEnv()
	if err != nil {
		return err
	}
	config.Name, config.NoRelay, config.NoCron, config.NoPruner = "chaos-worker", true, true, true
	lines, err := journal.Open(os.Getenv("CHAOS_JOURNAL"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	return programs.Embed(ctx, config, obedient{lines}.register, func(ctx context.Context) error {
		watching, ctx := errgroup.WithContext(ctx)
		watching.Go(func() error { return watchStandstills(ctx, lines) })
		if os.Getenv("CHAOS_REPORTS") != "" {
			watching.Go(func() error { return growth.WriteSizes(ctx, os.Stdout) })
		}
		return watching.Wait()
	})
}

// How often the process checks the clock, and how long a gap counts as
// standing still: much less than a lock lasts.
const (
	checkEvery = 100 * time.Millisecond
	standstill = time.Second
)

// watchStandstills records when the process did not run: it was stopped, or the
// machine had no time for it.
func watchStandstills(ctx context.Context, lines *journal.Writer) error {
	ticker := time.NewTicker(checkEvery)
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
			if err := lines.Write(journal.Line{Kind: journal.Standstill, At: last, Until: now}); err != nil {
				return err
			}
		}
		last = now
	}
}
