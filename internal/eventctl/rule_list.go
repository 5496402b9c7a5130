package eventctl

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
)

type ruleDoc struct {
	Rule   operate.RuleType    `json:"rule"`
	Canvas eventqueue.CanvasID `json:"canvas_id"`
	Module string              `json:"module"`
	Name   string              `json:"name"`
	ruleWidth
	Since time.Time `json:"created_at"`
	ruleFacts
}

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
						"cannot be lifted; to lift it: eventctl %s", rule.Type, rule.RuleScope, wordsOf(rule.Type).lift))
				}
			}
			return p.writeRules(rules)
		})
	}
	return cmd
}

func (p *program) writeRules(rules []operate.Rule) error {
	doc := struct {
		Rules []ruleDoc `json:"rules"`
	}{rowsOf(rules, func(r operate.Rule) ruleDoc {
		return ruleDoc{r.Type, r.Canvas, r.Module, r.Name, widthOf(r.RuleScope), r.CreatedAt.UTC(), factsOf(r)}
	})}
	rows := tableOf(rules, []string{"RULE", "CANVAS", "MODULE", "NAME", "MODIFIER", "SINCE", "UNTIL", "ACTOR", "REASON"}, func(r operate.Rule) []string {
		until, name := "", printing.Printable(r.Name)
		if !r.Until.IsZero() {
			until = printing.Time(r.Until)
		}
		if r.Rate > 0 {
			until = fmt.Sprintf("lifted at %d/s", r.Rate)
		}
		if r.Prefix {
			name += "…"
		}
		return []string{string(r.Type), r.Canvas.String(), printing.Printable(r.Module), name, printing.Printable(r.Modifier),
			printing.Time(r.CreatedAt), until, printing.Printable(r.Actor), printing.Printable(r.Reason)}
	})
	return p.write(doc, func(w io.Writer) { printing.List(w, rows, "rules") })
}
