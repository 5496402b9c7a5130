package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

func releaseRateLimitCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release --canvas … [--module … --name …]",
		Short: "Notify the events that rate limits held back, after limits were changed in SQL",
		Long: "Make the events due that a rate limit has put off, and notify them. Those that a limit still holds\n" +
			"back are put off again. set and remove do this by themselves; use release after limits were\n" +
			"changed in SQL, or after a set or a remove was interrupted.",
		Example: "  eventctl limit rate release --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args:    cobra.NoArgs,
	}
	p.addRateLimitScope(cmd, p.releaseRateLimit)
	return cmd
}

func (p *program) releaseRateLimit(cmd *cobra.Command, limits *operate.RateLimits, scope eventqueue.Scope, silent bool) error {
	notified, err := limits.Release(cmd.Context(), scope)
	if err != nil {
		return failed(err)
	}
	doc := rateChange(operate.RateLimit{Scope: scope}, notified > 0, notified)
	if notified == 0 {
		return p.writeLine(doc, doc.Of()+": no event waits because of a rate limit")
	}
	return p.writeLine(doc, "released what waited of "+doc.Of()+releasedSuffix(notified, silent))
}
