package eventctl

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

func listRulesCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the rules that hold handlers back",
		Long: "List the rules that hold handlers back: who added them, when and why, and when cron lifts them.\n" +
			"pause and block add them, unpause and unblock lift them.",
		Example: "  eventctl rule list --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args:    cobra.NoArgs,
	}
	flags := addFilter(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			rules, err := reader.Rules(cmd.Context(), filter)
			if err != nil {
				return failed(fmt.Errorf("list the rules: %w", err))
			}
			for _, rule := range rules {
				if rule.Overdue(time.Now()) {
					p.Warning(fmt.Errorf("the end of %s %s has passed, and it is still there: see that a cron program runs, and whether its log says that the row "+
						"cannot be lifted; to lift it: eventctl un%s", rule.Type, rule.RuleScope, rule.Type))
				}
			}
			return writeList(p, view.ListOf(rules, view.RuleOf), "rules", "RULE  CANVAS  MODULE  NAME  MODIFIER  SINCE  UNTIL  ACTOR  REASON", func(r view.Rule) []any {
				return []any{r.Type, r.Canvas, r.Module, r.Names(), r.Modifier, r.CreatedAt, r.Ends(), r.Actor, r.Reason}
			})
		})
	}
	return cmd
}
