package eventctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
)

func setRateLimitCommand(p *program) *cobra.Command {
	var limit operate.RateLimit
	var mode string
	var silent bool
	cmd := &cobra.Command{
		Use:   "set --canvas … [--module … --name …] [--per-minute N] [--per-day N]",
		Short: "Add a rate limit, or replace that of its scope",
		Long: "Limit how many events of a handler on a canvas, or of a whole canvas, may begin to run per minute\n" +
			"and per day (UTC), from the next claim on. It replaces the existing limit, including a part that\n" +
			"is not given. If the new limit allows more, the events that the old one held back are notified.",
		Example: "  eventctl limit rate set --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --per-minute 600\n" +
			"  eventctl limit rate set --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed --per-day 10000",
		Args: cobra.NoArgs,
	}
	flags := addLimitScope(cmd)
	addSilent(cmd, &silent)
	cmd.Flags().IntVar(&limit.PerMinute, "per-minute", 0, "at most `n` events in each minute")
	cmd.Flags().IntVar(&limit.PerDay, "per-day", 0, "at most `n` events on each day")
	addChoice(cmd, &mode, "mode", string(ratelimit.Exact), "how it counts (approximate is cheaper and may overshoot)",
		string(ratelimit.Exact), string(ratelimit.Approximate))
	cmd.MarkFlagsOneRequired("per-minute", "per-day")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if limit.Scope, err = flags.rateScope(); err != nil {
			return err
		}
		if err := checkRate(cmd, &limit, mode); err != nil {
			return err
		}
		return p.withRateLimits(cmd, silent, func(limits *operate.RateLimits) error {
			return p.setRateLimit(cmd, limits, limit, silent)
		})
	}
	return cmd
}

// checkRate refuses an invalid limit, and sets its mode.
func checkRate(cmd *cobra.Command, limit *operate.RateLimit, mode string) error {
	for name, n := range map[string]int{"per-minute": limit.PerMinute, "per-day": limit.PerDay} {
		if cmd.Flags().Changed(name) && n < 1 {
			return badInput(fmt.Errorf("--%s is %d: it must be at least 1; to let nothing run, use pause or block", name, n))
		}
	}
	if limit.Mode = ratelimit.Mode(mode); mode == "" {
		return badInput(errors.New("--mode is empty: it must be exact or approximate"))
	}
	if err := limit.Validate(); err != nil {
		return badInput(err)
	}
	return nil
}

func (p *program) setRateLimit(cmd *cobra.Command, limits *operate.RateLimits, limit operate.RateLimit, silent bool) error {
	notified, err := limits.Set(cmd.Context(), limit)
	if err != nil {
		return failed(err)
	}
	doc := rateChange(limit, true, notified)
	return p.writeLine(doc, "limited "+doc.Of()+doc.Rates()+releasedSuffix(notified, silent))
}
