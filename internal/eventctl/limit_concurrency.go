package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
)

// concurrencyFlags are the flags that name a concurrency limit.
type concurrencyFlags struct {
	*scopeFlags
	key      string
	everyKey bool
	silent   bool
}

func addConcurrency(cmd *cobra.Command) *concurrencyFlags {
	f := &concurrencyFlags{scopeFlags: addLimitScope(cmd)}
	cmd.Flags().StringVar(&f.key, "key", "", "only of this ordering `key`")
	cmd.Flags().BoolVar(&f.everyKey, "every-key", false, "of each ordering key that has no limit of its own, but for instances of grids")
	cmd.MarkFlagsMutuallyExclusive("key", "module", "every-key")
	addSilent(cmd, &f.silent)
	return f
}

// limit returns the limit that the flags name. A flag that is given must not be empty.
func (f *concurrencyFlags) limit() (limit operate.ConcurrencyLimit, err error) {
	if err := checkGiven(f.cmd, "module", "name", "key"); err != nil {
		return limit, err
	}
	limit = operate.ConcurrencyLimit{Module: f.module, Name: f.name, Key: f.key, EveryKey: f.everyKey}
	if limit.Canvas, err = parseCanvas(f.canvas); err != nil {
		return limit, err
	}
	if err := limit.Validate(); err != nil {
		return limit, badInput(err)
	}
	return limit, nil
}

func (p *program) withConcurrencyLimits(cmd *cobra.Command, silent bool, f func(limits *operate.ConcurrencyLimits) error) error {
	return p.withQueue(cmd.Context(), silent, func(c *connection) error {
		limits, err := operate.NewConcurrencyLimits(c.store, c.queue)
		if err != nil {
			return failed(err)
		}
		return f(limits)
	})
}
