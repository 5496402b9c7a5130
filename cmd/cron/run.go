package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/service"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, environment map[string]string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "cron",
		Short: "Emit what cron definitions say and publish the notifications that are owed",
		Long: "cron emits one event for each slot of each cron definition (see eventctl cron), relays the\n" +
			"notifications that are owed, and deletes history that is older than HISTORY_COMPLETED_FOR and\n" +
			"HISTORY_FAILED_FOR. Run at least one; any number may run. It is configured by its environment\n" +
			"(docs/configuration.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return work(cmd.Context(), environment, stderr)
		},
	}
	return service.Execute(ctx, root, args, stdout, stderr)
}

// work runs the relay, the cron checker and the pruner until ctx ends.
func work(ctx context.Context, environment map[string]string, logs io.Writer) (err error) {
	config, log, err := service.Setup(environment, logs)
	if err != nil {
		return err
	}
	// The log's readers see errors of a start as well as the terminal's.
	defer func() {
		if err != nil {
			log.Error("cron failed", zap.Error(err))
		}
	}()
	resources, err := service.Open(ctx, config, "eventsv2-cron", log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resources.Close()) }()
	relay, err := eventqueue.NewRelay(resources.Store, resources.Notifier, eventqueue.RelayConfig{
		Interval:    config.RelayInterval,
		Quiet:       config.RelayQuiet,
		LockTimeout: config.LockTimeout,
		PerSecond:   config.RelayPerSecond,
		Logger:      log,
	})
	if err != nil {
		return err
	}
	checker, err := cronchecker.New(cronchecker.NewPostgres(resources.Pool, resources.Queue), cronchecker.Config{Logger: log})
	if err != nil {
		return err
	}
	pruner, err := eventqueue.NewPruner(resources.Store, eventqueue.PrunerConfig{
		CompletedFor: config.HistoryCompletedFor,
		FailedFor:    config.HistoryFailedFor,
		Interval:     config.HistoryInterval,
		PerSecond:    config.HistoryPerSecond,
		Logger:       log,
	})
	if err != nil {
		return err
	}
	return service.RunWithHealth(ctx, config.Port, resources.Ready, log, func(ctx context.Context) error {
		log.Info("cron started", zap.Duration("relay_interval", config.RelayInterval))
		defer log.Info("cron stopped")
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return relay.Run(ctx) })
		group.Go(func() error { return checker.Run(ctx) })
		group.Go(func() error { return pruner.Run(ctx) })
		return group.Wait()
	})
}
