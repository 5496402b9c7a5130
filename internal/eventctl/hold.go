package eventctl

import (
	"errors"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
)

// holdKind is the block of the whole queue, which has commands of its own.
func holdKind() operate.RuleKind {
	kind := operate.KindOf(operate.BlockRule)
	kind.Add, kind.Lift, kind.State, kind.Lifted = "hold --all", "unhold --all", "held", "let go"
	return kind
}

// errNotAll is the error without --all: to hold a whole queue by accident stops every tenant.
var errNotAll = errors.New("give --all: this is about the whole queue, with all its canvases; for handlers there are pause and block")

func holdCommand(p *program) *cobra.Command {
	var all bool
	rule := operate.Rule{Type: operate.BlockRule, RuleScope: operate.WholeQueue}
	cmd := &cobra.Command{
		Use:   "hold --all --reason …",
		Short: "Hold the whole queue: no event begins, on no canvas",
		Long: "Hold the whole queue, as in a copy of production, which must not do again what production does. After\n" +
			"the command has returned no event begins, whatever its canvas and handler, also of those that are\n" +
			"emitted later; running events continue. Events are accepted, and cron emits. What holds handlers\n" +
			"back by itself stays as it is. explain, rule list and the dashboard say that the queue is held.",
		Example: "  eventctl hold --all --reason \"a copy of production\"",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&all, "all", false, "the whole queue (required)")
	cmd.Flags().StringVar(&rule.Reason, "reason", "", "why, for whoever asks why nothing runs")
	cmd.Flags().StringVar(&rule.Actor, "actor", "", "who holds it (default: your user name)")
	require(cmd, "reason")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !all {
			return badInput(errNotAll)
		}
		if err := rule.Validate(); err != nil {
			return badInput(err)
		}
		return p.withStore(cmd.Context(), func(store *pgstore.Store, config setup.Config) error {
			return p.addRule(cmd.Context(), store, config, holdKind(), rule)
		})
	}
	return cmd
}

func unholdCommand(p *program) *cobra.Command {
	var all, silent bool
	cmd := &cobra.Command{
		Use:   "unhold --all",
		Short: "Let the events of a queue run again that was held",
		Long: "Let the events of a queue run again that was held with hold --all, and notify those that wait and that\n" +
			"nothing else holds back. To have a handler start slowly, pause it first, and lift that at a rate. The\n" +
			"exit status is 3 if the queue was not held.",
		Example: "  eventctl unhold --all",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&all, "all", false, "the whole queue (required)")
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !all {
			return badInput(errNotAll)
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			return p.liftRule(cmd.Context(), c, holdKind(), operate.Lift{Type: operate.BlockRule, RuleScope: operate.WholeQueue})
		})
	}
	return cmd
}
