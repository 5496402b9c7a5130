package eventctl

import (
	"errors"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

func removeConcurrencyLimitCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove --canvas … [--module … --name … | --key … | --every-key]",
		Short: "Remove a concurrency limit, and notify the events that may run without it",
		Long: "Remove the limit of how many events of a canvas, of a handler on it or of an ordering key run at\n" +
			"once, and notify those that may run without it. The exit status is 3 if there was none.",
		Example: "  eventctl limit concurrency remove --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --every-key",
		Args:    cobra.NoArgs,
	}
	f := addConcurrency(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limit, err := f.limit()
		if err != nil {
			return err
		}
		return p.withConcurrencyLimits(cmd, f.silent, func(limits *operate.ConcurrencyLimits) error {
			removed, err := limits.Remove(cmd.Context(), limit)
			if err != nil {
				return failed(err)
			}
			doc := view.ConcurrencyLimitChangeOf(limit, removed)
			if !removed {
				return errors.Join(notFound("%s has no limit", limit), p.writeNothing(doc))
			}
			return p.writeLine(doc, "removed the limit of "+limit.String())
		})
	}
	return cmd
}
