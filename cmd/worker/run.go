package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, environment map[string]string, stdout, stderr io.Writer) int {
	return service.Execute(ctx, command(environment, stderr), args, stdout, stderr)
}

func command(environment map[string]string, logs io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "worker",
		Short: "Run events: post each to the HTTP target of its handler",
		Long: "worker pulls notifications, claims their events in Postgres and posts each event to the HTTP target\n" +
			"that HANDLERS_FILE names for its handler. It is configured by its environment (docs/configuration.md).\n" +
			"SIGTERM stops it: running events may finish, the others go back unharmed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return work(cmd.Context(), environment, logs)
		},
	}
	root.AddCommand(&cobra.Command{
		Use:   "check [file]",
		Short: "Validate a handlers file (default: HANDLERS_FILE) without starting",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return check(cmd.OutOrStdout(), append(args, environment["HANDLERS_FILE"])[0])
		},
	})
	return root
}

func check(out io.Writer, path string) error {
	file, err := loadHandlers(path)
	if err != nil {
		return err
	}
	if err := file.Register(eventqueue.NewHandlers(), http.DefaultClient); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: ok, %d handlers\n", path, len(file.Entries))
	return err
}

func loadHandlers(path string) (*httptarget.File, error) {
	if path == "" {
		return nil, errors.New("HANDLERS_FILE is not set: name the YAML file that maps handlers to HTTP targets")
	}
	return httptarget.Load(path)
}

// work runs a worker until ctx ends.
func work(ctx context.Context, environment map[string]string, logs io.Writer) (err error) {
	config, log, err := service.Setup(environment, logs)
	if err != nil {
		return err
	}
	// The log's readers see errors of a start as well as the terminal's.
	defer func() {
		if err != nil {
			log.Error("worker failed", zap.Error(err))
		}
	}()
	client := httptarget.NewClient()
	defer client.CloseIdleConnections()
	handlers, err := handlersOf(config, client)
	if err != nil {
		return err
	}
	resources, err := service.Open(ctx, config, "eventsv2-worker", log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resources.Close()) }()
	heartbeats, err := pgstore.Open(ctx, config.DatabaseURL, "eventsv2-worker-heartbeat", 1)
	if err != nil {
		return err
	}
	defer heartbeats.Close()
	receiver, err := resources.Receiver(config, log)
	if err != nil {
		return err
	}
	worker, err := eventqueue.NewWorker(resources.Queue, resources.Store, receiver, handlers, eventqueue.WorkerConfig{
		Concurrency: config.Concurrency,
		ClaimBatch:  config.ClaimBatch,
		LockTimeout: config.LockTimeout,
		Heartbeat:   config.Heartbeat,
		GracePeriod: cmp.Or(config.GracePeriod, -1), // 0 is none here
		KeepHistory: config.KeepHistory,
		Heartbeats:  pgstore.New(heartbeats),
		Logger:      log,
	})
	if err != nil {
		return err
	}
	return service.RunWithHealth(ctx, config.Port, resources.Ready, log, func(ctx context.Context) error {
		log.Info("worker started", zap.Int("concurrency", config.Concurrency), zap.String("doorbell", config.DoorbellName()))
		defer log.Info("worker stopped")
		return worker.Run(ctx)
	})
}

func handlersOf(config service.Config, client *http.Client) (*eventqueue.Handlers, error) {
	file, err := loadHandlers(config.HandlersFile)
	if err != nil {
		return nil, err
	}
	handlers := eventqueue.NewHandlers()
	return handlers, file.Register(handlers, client)
}
