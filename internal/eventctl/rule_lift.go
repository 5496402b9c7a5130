package eventctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// liftRuleCommand makes unpause and unblock.
func liftRuleCommand(kind operate.RuleKind) command {
	return func(p *program) *cobra.Command {
		var silent bool
		var rate string
		cmd := &cobra.Command{
			Use:   kind.Lift + " --canvas … --module … {--name … | --prefix …}",
			Short: fmt.Sprintf("Let a handler run again that was %s, and notify its waiting events", string(kind.State)),
			Long: fmt.Sprintf("Let a handler run again that was %s by %s. Give the same flags as to %s: each rule is lifted by\n"+
				"itself, and the waiting events that no other one holds back are notified. The exit status is 3 if there\n"+
				"was no such rule. With --rate the waiting events run by and by: one second's worth at once, the rest\n"+
				"while cron runs, in the order of their ids, with new events behind them. Without it, also\n"+
				"later, all run at once.", string(kind.State), kind.Holder, kind.Add),
			Example: "  eventctl " + kind.Lift + " --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed",
			Args:    cobra.NoArgs,
		}
		flags := addRuleScope(cmd)
		cmd.Flags().StringVar(&rate, "rate", "", "let so many waiting events run in a second, as in `500/s` (default: all at once)")
		addSilent(cmd, &silent)
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			scope, err := flags.scope()
			if err != nil {
				return err
			}
			lift := operate.Lift{Type: kind.Type, RuleScope: scope}
			if cmd.Flags().Changed("rate") {
				if lift.Rate, err = parseRate(rate); err != nil {
					return err
				}
			}
			return p.withQueue(cmd.Context(), silent, func(c *connection) error {
				return p.liftRule(cmd.Context(), c, kind, lift)
			})
		}
		return cmd
	}
}

// parseRate returns how many events in a second a text like 500/s means.
func parseRate(text string) (int, error) {
	number, perSecond := strings.CutSuffix(text, "/s")
	rate, err := strconv.Atoi(number)
	if !perSecond || err != nil || rate < 1 || rate > operate.MaxRate {
		return 0, badInput(fmt.Errorf("--rate %q is no rate: write how many events in a second, 1/s to %d/s", text, operate.MaxRate))
	}
	return rate, nil
}

func (p *program) liftRule(ctx context.Context, c *connection, kind operate.RuleKind, lift operate.Lift) error {
	rules, err := operate.NewRules(c.store, c.queue)
	if err != nil {
		return failed(err)
	}
	result, err := rules.LiftRule(ctx, lift)
	if err != nil && result.GoesOn {
		return failed(fmt.Errorf("the rule has its rate, and cron lifts it: %w", err))
	}
	if err != nil && result.Removed {
		return failed(fmt.Errorf("the rule is lifted and %s notified; the relay notifies the rest: %w", printing.Plural(result.Notified, "event"), err))
	}
	if err != nil {
		return failed(err)
	}
	left, err := inspect.NewIn(c.store.Schema(), c.store.Pool()).RulesAbout(ctx, lift.RuleScope)
	if err != nil {
		return failed(fmt.Errorf("the rule is lifted; query the remaining rules: %w", err))
	}
	change := view.LiftOf(lift, result, left)
	if err := p.addKnown(ctx, c.store, lift.RuleScope, &change); err != nil {
		return err
	}
	text := liftText(kind, lift, change, c.silent)
	if !result.Removed {
		return errors.Join(notFound("%s", text), p.writeNothing(change))
	}
	return p.writeLine(change, text)
}

// liftText describes the result of a lift.
func liftText(kind operate.RuleKind, lift operate.Lift, change view.RuleChange, silent bool) string {
	var b strings.Builder
	switch {
	case !change.Changed:
		b.WriteString(lift.String() + " was not " + string(kind.State))
	case change.GoesOn:
		fmt.Fprintf(&b, "%s %s at %d/s", kind.Lifted, lift.RuleScope, lift.Rate)
	default:
		b.WriteString(kind.Lifted + " " + lift.String())
	}
	for _, r := range change.Left {
		b.WriteString("; still " + string(r.Kind().State) + " by " + r.Kind().Holder)
		if r.Scope() != lift.RuleScope {
			fmt.Fprintf(&b, ": %s", r.Scope())
		}
	}
	if change.Changed && (len(change.Left) == 0 || *change.Notified > 0) {
		b.WriteString(notifiedSuffix(*change.Notified, silent))
	}
	if change.GoesOn {
		b.WriteString("; cron goes on")
	}
	return b.String()
}
