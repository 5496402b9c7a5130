package eventctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

func listWorkersCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the workers that run, and those that ended less than a day ago",
		Long: "List the workers that run, and those that ended less than a day ago, the longest running first. Their\n" +
			"states are:\n\n" +
			"  live     it is connected to the database\n" +
			"  stopped  it has stopped in order\n" +
			"  dead     it is not connected: it died, or has lost the database",
		Example: "  eventctl worker list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
				workers, err := reader.Workers(cmd.Context())
				if err != nil {
					return failed(fmt.Errorf("list the workers: %w", err))
				}
				heading := "NUMBER  STATE  WORKER  STARTED  STOPPED  SLOTS  HANDLERS  VERSION"
				return writeList(p, view.ListOf(workers, view.WorkerOf), "workers", heading, func(w view.Worker) []any {
					return []any{w.Number, w.State, w.Place(), w.When(&w.StartedAt), w.When(w.StoppedAt), w.Occupied(), w.HandlersText(), w.Version}
				})
			})
		},
	}
}
