package eventctl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
)

func replayCommand(p *program) *cobra.Command {
	var rate string
	var silent bool
	cmd := &cobra.Command{
		Use:   "replay {filter {--dry-run | --yes} [--rate …] | --resume OPERATION}",
		Short: "Emit events of the history again, as new events",
		Long: "Emit events that have ended again, which a filter selects: completed ones, which workers retain with\n" +
			"RETAIN_HISTORY=true, or failed or cancelled ones with --status. They are new events, with the values, attributes\n" +
			"and ordering keys of those that they repeat, without their unique keys, and with the id of the first one in the\n" +
			"attribute replayed_from. --rate bounds how many of them become due. An interrupt stops the replay, and --resume\n" +
			"goes on with it, as after a crash: it emits no event a second time.",
		Example: "  eventctl replay --name order_placed --newer-than 24h --dry-run\n" +
			"  eventctl replay --name order_placed --newer-than 24h --rate 20/s --yes",
		Args: cobra.NoArgs,
	}
	filters := addEventFilter(cmd, endedEvents())
	cmd.Flags().StringVar(&rate, "rate", fmt.Sprintf("%d/s", operate.DefaultReplayRate), "how many `events` become due at most, as in 20/s, 300/m or 1000/h")
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, filter, err := filters.what(nil)
		if err != nil {
			return err
		}
		change := operate.Change{Verb: operate.VerbReplay, Filter: filter}
		if change.Rate, err = parseReplayRate(rate); err != nil {
			return err
		}
		return p.changeMany(cmd.Context(), filters, change, silent)
	}
	return cmd
}

// endedEvents are selected by replay.
func endedEvents() filterOf {
	of := loggedEvents("attribute")
	of.ids = "a filter, as with --canvas and --name, or --resume"
	of.stateHelp = "only events that ended with this `status`; without it, completed ones"
	of.states, of.validate = operate.EndedStates(), operate.EventFilter.ValidateEnded
	return of
}

// parseReplayRate reads a number of events per second, minute or hour.
func parseReplayRate(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")
	seconds, known := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !known {
		return 0, badInput(fmt.Errorf("--rate %q is no rate: write it like 20/s, 300/m or 1000/h", text))
	}
	if rate := n / seconds; rate >= operate.MinReplayRate && rate <= operate.MaxReplayRate {
		return rate, nil
	}
	return 0, badInput(fmt.Errorf("--rate %s is out of range: it must be from %v to %d events per second", text, operate.MinReplayRate, operate.MaxReplayRate))
}
