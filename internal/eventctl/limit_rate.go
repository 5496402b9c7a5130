package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// rateScope returns the scope that the flags of a rate limit name: a handler on a canvas, or
// a whole canvas. An empty flag does not mean the whole canvas.
func (f *scopeFlags) rateScope() (scope eventqueue.Scope, err error) {
	if f.cmd.Flags().Changed("module") {
		return f.scope()
	}
	if scope.Canvas, err = parseCanvas(f.canvas); err != nil {
		return scope, err
	}
	if err := scope.ValidateRate(); err != nil {
		return scope, badInput(err)
	}
	return scope, nil
}

// onRateLimits is the action of a command on the rate limits of a scope.
type onRateLimits func(cmd *cobra.Command, limits *operate.RateLimits, scope eventqueue.Scope, silent bool) error

// addRateLimitScope gives a command the flags of a rate limit, and runs f on the limits
// of the scope that they name.
func (p *program) addRateLimitScope(cmd *cobra.Command, f onRateLimits) {
	var silent bool
	flags := addLimitScope(cmd)
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		scope, err := flags.rateScope()
		if err != nil {
			return err
		}
		return p.withRateLimits(cmd, silent, func(limits *operate.RateLimits) error {
			return f(cmd, limits, scope, silent)
		})
	}
}

func (p *program) withRateLimits(cmd *cobra.Command, silent bool, f func(limits *operate.RateLimits) error) error {
	return p.withQueue(cmd.Context(), silent, func(c *connection) error {
		limits, err := operate.NewRateLimits(c.store, c.queue)
		if err != nil {
			return failed(err)
		}
		return f(limits)
	})
}

// rateChange is the result of a change of the rate limit of a scope.
func rateChange(limit operate.RateLimit, changed bool, notified int) view.RateLimitChange {
	return view.RateLimitChange{RateLimit: view.RateLimitOf(limit), Changed: changed, Notified: notified}
}
