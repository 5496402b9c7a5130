package eventctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

func removeRateLimitCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove --canvas … [--module … --name …]",
		Short: "Remove a rate limit, and notify the events that it held back",
		Long: "Remove the rate limit of a handler on a canvas, or of a whole canvas, with what was counted, and\n" +
			"notify the events that it held back. The exit status is 3 if there was none.",
		Example: "  eventctl limit rate remove --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args:    cobra.NoArgs,
	}
	p.addRateLimitScope(cmd, p.removeRateLimit)
	return cmd
}

func (p *program) removeRateLimit(cmd *cobra.Command, limits *operate.RateLimits, scope eventqueue.Scope, silent bool) error {
	removed, notified, err := limits.Remove(cmd.Context(), scope)
	if err != nil && removed {
		return failed(fmt.Errorf("the limit is removed, and then: %w", err))
	}
	if err != nil {
		return failed(err)
	}
	doc := rateChange(operate.RateLimit{Scope: scope}, removed, notified)
	if !removed {
		return errors.Join(notFound("%s", doc.Of()+" has no rate limit of its own"+releasedSuffix(notified, silent)), p.writeNothing(doc))
	}
	return p.writeLine(doc, "removed the limit of "+doc.Of()+releasedSuffix(notified, silent))
}
