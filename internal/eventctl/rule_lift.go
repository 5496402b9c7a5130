package eventctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
)

// liftRuleCommand makes unpause and unblock.
func liftRuleCommand(words ruleWords) command {
	return func(p *program) *cobra.Command {
		var silent bool
		cmd := &cobra.Command{
			Use:   words.lift + " --canvas … --module … --name …",
			Short: fmt.Sprintf("Let a handler run again that was %s, and notify its waiting events", words.added),
			Long: fmt.Sprintf("Let a handler run again that was %s by %s. Pause and block are independent of each other: the\n"+
				"waiting events are notified when none of them is left. The exit status is 3 when the handler was not\n"+
				"%s.", words.added, words.who, words.added),
			Example: "  eventctl " + words.lift + " --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed",
			Args:    cobra.NoArgs,
		}
		flags := addScope(cmd)
		addSilent(cmd, &silent)
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			scope, err := flags.scope()
			if err != nil {
				return err
			}
			return p.withQueue(cmd.Context(), silent, func(c *connection) error {
				return p.liftRule(cmd.Context(), c, words, scope)
			})
		}
		return cmd
	}
}

func (p *program) liftRule(ctx context.Context, c *connection, words ruleWords, scope eventqueue.Scope) error {
	rules, err := control.NewRules(c.store, c.queue)
	if err != nil {
		return failed(err)
	}
	removed, notified, err := rules.Lift(ctx, words.rule, scope)
	if err != nil && removed {
		return failed(fmt.Errorf("the rule is lifted and %s notified; the relay notifies the rest: %w", printing.Plural(notified, "event"), err))
	}
	if err != nil {
		return failed(err)
	}
	change, err := p.ruleChanged(ctx, c.store, words.rule, scope, removed)
	if err != nil {
		return err
	}
	left, err := inspect.New(c.store.Pool()).Rules(ctx, inspect.FilterOf(scope))
	if err != nil {
		return failed(fmt.Errorf("the rule is lifted; query the remaining rules: %w", err))
	}
	change.Notified = &notified
	for _, rule := range left {
		change.Left = append(change.Left, rule.Type)
	}
	text := liftText(words, scope, change, c.silent)
	if !removed {
		return errors.Join(notFound("%s", text), p.writeNothing(change))
	}
	return p.writeLine(change, text)
}

// liftText describes the result of a lift.
func liftText(words ruleWords, scope eventqueue.Scope, change ruleChange, silent bool) string {
	var b strings.Builder
	if change.Changed {
		b.WriteString(words.lifted + " " + scope.String())
	} else {
		b.WriteString(scope.String() + " was not " + words.added)
	}
	for _, t := range change.Left {
		b.WriteString("; still " + wordsOf(t).added + " by " + wordsOf(t).who)
	}
	if change.Changed && len(change.Left) == 0 {
		b.WriteString(notifiedSuffix(*change.Notified, silent))
	}
	return b.String()
}
