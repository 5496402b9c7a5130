package eventctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

func setConcurrencyLimitCommand(p *program) *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "set --canvas … [--module … --name … | --key … | --every-key] --max N",
		Short: "Limit how many events run at once: of a canvas, of a handler on it, or of an ordering key",
		Long: "Limit how many events run at once, for the events that begin from now on; those that already run\n" +
			"are not stopped and do not count. It replaces the existing limit. If the new limit is higher,\n" +
			"waiting events are notified as far as there is room. Without a limit, the events of an ordering\n" +
			"key run one at a time.",
		Example: "  eventctl limit concurrency set --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --max 10\n" +
			"  eventctl limit concurrency set --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --key \"cart 7\" --max 2",
		Args: cobra.NoArgs,
	}
	f := addConcurrency(cmd)
	cmd.Flags().IntVar(&most, "max", 0, "`n` events at once, from 1 on")
	require(cmd, "max")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limit, err := f.limit()
		if err != nil {
			return err
		}
		if limit.Max = most; most < 1 || int(int32(most)) != most {
			return badInput(fmt.Errorf("--max is %d: it must be from 1 to 2147483647; to let none run, pause or block the handler", most))
		}
		return p.withConcurrencyLimits(cmd, f.silent, func(limits *operate.ConcurrencyLimits) error {
			if err := limits.Set(cmd.Context(), limit); err != nil {
				return failed(err)
			}
			return p.writeLine(view.ConcurrencyLimitChangeOf(limit, true), fmt.Sprintf("%d at once of %s", limit.Max, limit))
		})
	}
	return cmd
}
