package eventctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
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

// rateLimitDoc is a rate limit, in JSON. 0 is no such limit.
type rateLimitDoc struct {
	Canvas    eventqueue.CanvasID `json:"canvas_id"`
	Module    string              `json:"module"`
	Name      string              `json:"name"`
	PerMinute int                 `json:"per_minute"`
	PerDay    int                 `json:"per_day"`
	Mode      ratelimit.Mode      `json:"mode"`
}

func rateLimitDocOf(l operate.RateLimit) rateLimitDoc {
	return rateLimitDoc{l.Canvas, l.Module, l.Name, l.PerMinute, l.PerDay, l.Mode}
}

// rateScopeText names the scope of a limit.
func rateScopeText(scope eventqueue.Scope) string {
	if scope.WholeCanvas() {
		return "canvas " + scope.Canvas.String()
	}
	return scope.String()
}

func ratesText(l operate.RateLimit) (text string) {
	if l.PerMinute > 0 {
		text += fmt.Sprintf(", %d per minute", l.PerMinute)
	}
	if l.PerDay > 0 {
		text += fmt.Sprintf(", %d per day", l.PerDay)
	}
	return text + ", " + string(l.Mode)
}
