package program

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/worker"
	"eventsv2/internal/setup"
	"eventsv2/service"
)

// Worker runs cmd/worker until ctx ends, and returns its exit status.
func Worker(ctx context.Context, args []string, environment map[string]string, stdout, stderr io.Writer) int {
	return setup.Execute(ctx, workerCommand(environment), args, stdout, stderr)
}

func workerCommand(environment map[string]string) *cobra.Command {
	root := &cobra.Command{
		Use:   "worker",
		Short: "Run events: post each to the HTTP target of its handler",
		Long: "worker pulls notifications, claims their events in Postgres and posts each event to the HTTP target\n" +
			"that HANDLERS_FILE names for its handler; it serves the sources of webhooks that the same file lists, and emits the\n" +
			"messages of the subscriptions in it.\n" +
			"It is configured by its environment (docs/configuration.md).\n" +
			"SIGTERM stops it: running events may finish, the others go back unharmed. With --max-events or --ttl it\n" +
			"ends by itself, with status 0, for those who run it as a job.",
		Args: cobra.NoArgs,
	}
	maxEvents := root.Flags().Int("max-events", 0, "end when so many events have been run; 0 is no bound (default: WORKER_MAX_EVENTS)")
	ttl := root.Flags().Duration("ttl", 0, "stop after so long, like 5m; 0 is no bound (default: WORKER_TTL)")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case *maxEvents < 0:
			return fmt.Errorf("--max-events is %d: it must not be negative; 0 is no bound", *maxEvents)
		case *ttl < 0:
			return fmt.Errorf("--ttl is %s: it must not be negative; 0 is no bound", *ttl)
		}
		return runWorker(cmd.Context(), environment, func(c *worker.Config) {
			if cmd.Flags().Changed("max-events") {
				c.MaxEvents = *maxEvents
			}
			if cmd.Flags().Changed("ttl") {
				c.TTL = *ttl
			}
		})
	}
	root.AddCommand(checkCommand(environment), setup.HealthCommand(environment))
	return root
}

var errNoHandlers = errors.New("HANDLERS_FILE is not set: name the YAML file that maps handlers to HTTP targets")

// runWorker runs a worker until ctx ends.
func runWorker(ctx context.Context, environment map[string]string, flags func(*worker.Config)) error {
	config, err := service.FromEnvironment(environment)
	if err != nil {
		return err
	}
	if config.HandlersFile == "" {
		return errNoHandlers
	}
	flags(&config.Worker)
	config.Name, config.NoRelay, config.NoCron, config.NoPruner = "eventsv2-worker", true, true, true
	return run(ctx, environment, config)
}
