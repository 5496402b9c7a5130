package program

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"eventsv2/internal/setup"
	"eventsv2/service"
)

// Cron runs cmd/cron until ctx ends, and returns its exit status.
func Cron(ctx context.Context, args []string, environment map[string]string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "cron",
		Short: "Emit what cron definitions say and publish pending and lost notifications",
		Long: "cron emits one event for each slot of each cron definition (see eventctl cron), publishes pending and\n" +
			"lost notifications, and deletes history that is older than HISTORY_COMPLETED_FOR and\n" +
			"HISTORY_FAILED_FOR. Run at least one; any number may run. It is configured by its environment\n" +
			"(docs/configuration.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runCron(cmd.Context(), environment)
		},
	}
	root.AddCommand(setup.HealthCommand(environment))
	return setup.Execute(ctx, root, args, stdout, stderr)
}

// runCron runs the relay, the cron checker and the pruner until ctx ends.
func runCron(ctx context.Context, environment map[string]string) error {
	config, err := service.FromEnvironment(environment)
	if err != nil {
		return err
	}
	config.Name, config.NoWorker, config.HandlersFile = "eventsv2-cron", true, ""
	return run(ctx, environment, config)
}
