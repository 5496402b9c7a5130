package eventctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/humantime"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

// addRuleCommand makes pause and block.
func addRuleCommand(kind operate.RuleKind) command {
	return func(p *program) *cobra.Command {
		cmd := &cobra.Command{
			Use:   kind.Add + " --canvas … --module … {--name … | --prefix …}",
			Short: fmt.Sprintf("Hold back a handler on a canvas as %s, or all whose names begin in the same way", kind.Holder),
			Long: fmt.Sprintf("Hold back a handler on a canvas as %s, or with --prefix all handlers whose names begin with\n"+
				"that, whatever the modifier, or only with that of --modifier. After the command has returned, no\n"+
				"event of the handler starts until the handler is %s; running events continue. A handler that\n"+
				"is already %s stays so, with the reason, actor and end that it has. With --until, cron lifts\n"+
				"the rule at that time, or after that duration, at most %d s late.", kind.Holder, kind.Lifted, string(kind.State), int(operate.ExpiryInterval.Seconds())),
			Example: "  eventctl " + kind.Add + " --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed" +
				" --reason duplicates --until 2030-01-31T09:00:00Z",
			Args: cobra.NoArgs,
		}
		flags := addRuleFlags(cmd)
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			rule, err := flags.rule(kind.Type)
			if err != nil {
				return err
			}
			return p.withStore(cmd.Context(), func(store *pgstore.Store, config setup.Config) error {
				if flags.holds > 0 { // by the clock that will lift it
					if err := store.Pool().QueryRow(cmd.Context(), `SELECT clock_timestamp() + $1::interval`, flags.holds).Scan(&rule.Until); err != nil {
						return failed(err)
					}
				}
				return p.addRule(cmd.Context(), store, config, kind, rule)
			})
		}
		return cmd
	}
}

// ruleFlags are the flags that describe a new rule.
type ruleFlags struct {
	scope                *ruleScopeFlags
	reason, actor, until string
	holds                time.Duration // instead of a time
}

func addRuleFlags(cmd *cobra.Command) *ruleFlags {
	f := &ruleFlags{scope: addRuleScope(cmd)}
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for whoever asks why nothing runs")
	cmd.Flags().StringVar(&f.actor, "actor", "", "who adds the rule (default: your user name)")
	cmd.Flags().StringVar(&f.until, "until", "", "the `time` at which cron lifts the rule, as in 2030-01-31T09:00:00Z, or how long it holds, as in 90m")
	return f
}

// rule returns the rule that the flags describe. A flag that is given and empty, as from an unset
// variable of a script, is refused where it would change what is meant.
func (f *ruleFlags) rule(t operate.RuleType) (rule operate.Rule, err error) {
	if rule, err = f.identity(t); err != nil {
		return rule, err
	}
	if f.scope.of.cmd.Flags().Changed("until") {
		until, err := humantime.ParseEnd(f.until, nil)
		if err != nil {
			return rule, badInput(fmt.Errorf("--until %w", err))
		}
		rule.Until, f.holds = until.At, until.In
	}
	rule.Reason, rule.Actor = f.reason, f.actor
	if err := rule.Validate(); err != nil {
		return rule, badInput(err)
	}
	return rule, nil
}

func (f *ruleFlags) identity(t operate.RuleType) (rule operate.Rule, err error) {
	scope, err := f.scope.scope()
	return operate.Rule{Type: t, RuleScope: scope}, err
}

// addRule adds a rule. It publishes nothing, so its queue is silent.
func (p *program) addRule(ctx context.Context, store *pgstore.Store, config setup.Config, kind operate.RuleKind, rule operate.Rule) error {
	queue, err := silentQueue(store, config.Limits())
	if err != nil {
		return failed(err)
	}
	rules, err := operate.NewRules(store.As(actor(store)), queue)
	if err != nil {
		return failed(err)
	}
	rule.Actor = actorOr(rule.Actor, store)
	added, err := rules.AddRule(ctx, rule)
	switch {
	case errors.Is(err, operate.ErrUntilPassed):
		return badInput(err)
	case err != nil:
		return failed(err)
	}
	there, err := inspect.NewIn(store.Schema(), store.Pool()).RuleThere(ctx, rule)
	if err != nil {
		return failed(fmt.Errorf("the rule is there; query it: %w", err))
	}
	change := view.RuleChange{Rule: view.RuleOf(there), Changed: added}
	err = p.addKnown(ctx, store, rule.RuleScope, &change)
	if err != nil {
		return err
	}
	if added {
		return p.writeLine(change, string(kind.State)+" "+rule.String())
	}
	return p.writeLine(change, "already "+string(kind.State)+" "+rule.String()+" "+inspect.RuleOrigin(there, humantime.Time))
}
