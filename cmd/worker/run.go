package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"

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
			"that HANDLERS_FILE names for its handler; it serves the sources of webhooks that the same file lists.\n" +
			"It is configured by its environment (docs/configuration.md).\n" +
			"SIGTERM stops it: running events may finish, the others go back unharmed. With --max-events or --ttl it\n" +
			"ends by itself, with status 0, for those who run it as a job.",
		Args: cobra.NoArgs,
	}
	maxEvents := root.Flags().Int("max-events", 0, "end when so many events have been run; 0 is no bound (default: WORKER_MAX_EVENTS)")
	ttl := root.Flags().Duration("ttl", 0, "stop after so long, like 5m; 0 is no bound (default: WORKER_TTL)")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		environment := maps.Clone(environment)
		if cmd.Flags().Changed("max-events") {
			if *maxEvents < 0 {
				return fmt.Errorf("--max-events is %d: it must not be negative; 0 is no bound", *maxEvents)
			}
			environment["WORKER_MAX_EVENTS"] = strconv.Itoa(*maxEvents)
		}
		if cmd.Flags().Changed("ttl") {
			if *ttl < 0 {
				return fmt.Errorf("--ttl is %s: it must not be negative; 0 is no bound", *ttl)
			}
			environment["WORKER_TTL"] = ttl.String()
		}
		return work(cmd.Context(), environment, logs)
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
	if _, err := service.WebhookSources(file, service.AnySecrets); err != nil {
		return err
	}
	if len(file.Webhooks) > 0 {
		_, err = fmt.Fprintf(out, "%s: ok, %d handlers, %d sources of webhooks\n", path, len(file.Entries), len(file.Webhooks))
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
	file, err := loadHandlers(config.HandlersFile)
	if err != nil {
		return err
	}
	handlers := eventqueue.NewHandlers()
	if err := file.Register(handlers, client); err != nil {
		return err
	}
	sources, err := service.WebhookSources(file, service.SecretsOf(environment))
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
		MaxEvents:   config.MaxEvents,
		TTL:         config.TTL,
		KeepHistory: config.KeepHistory,
		Heartbeats:  pgstore.New(heartbeats),
		Logger:      log,
	})
	if err != nil {
		return err
	}
	webhooks, err := service.Webhooks(resources.Queue, resources.Store, sources, config, log)
	if err != nil {
		return err
	}
	return service.RunWithWebhooks(ctx, config.Port, resources.Ready, webhooks, log, func(ctx context.Context) error {
		log.Info("worker started", zap.Int("concurrency", config.Concurrency), zap.String("doorbell", config.DoorbellName()))
		defer log.Info("worker stopped")
		return worker.Run(ctx)
	})
}
