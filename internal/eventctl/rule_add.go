package eventctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
)

// addRuleCommand makes pause and block.
func addRuleCommand(words ruleWords) command {
	return func(p *program) *cobra.Command {
		cmd := &cobra.Command{
			Use:   words.add + " --canvas … --module … --name …",
			Short: fmt.Sprintf("Hold back a handler on a canvas, in the name of %s, whatever the modifier", words.who),
			Long: fmt.Sprintf("Hold back a handler on a canvas, in the name of %s, whatever the modifier. When the command has\n"+
				"returned, no event of the handler starts until it is %s; those that run go on. A handler that is\n"+
				"%s already stays so.", words.who, words.lifted, words.added),
			Example: "  eventctl " + words.add + " --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed",
			Args:    cobra.NoArgs,
		}
		flags := addScope(cmd)
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			scope, err := flags.scope()
			if err != nil {
				return err
			}
			return p.withStore(cmd.Context(), func(store *pgstore.Store, config setup.Config) error {
				return p.addRule(cmd.Context(), store, config, words, scope)
			})
		}
		return cmd
	}
}

// addRule adds a rule. It publishes nothing, so its queue is silent.
func (p *program) addRule(ctx context.Context, store *pgstore.Store, config setup.Config, words ruleWords, scope eventqueue.Scope) error {
	queue, err := silentQueue(store, config.Limits())
	if err != nil {
		return failed(err)
	}
	rules, err := control.NewRules(store, queue)
	if err != nil {
		return failed(err)
	}
	added, err := rules.Add(ctx, words.rule, scope)
	if err != nil {
		return failed(err)
	}
	change, err := p.ruleChanged(ctx, store, words.rule, scope, added)
	if err != nil {
		return err
	}
	verb := words.added
	if !added {
		verb = "already " + verb
	}
	return p.writeLine(change, verb+" "+scope.String())
}
