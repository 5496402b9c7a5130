package eventctl

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
)

type ruleDoc struct {
	Rule   control.RuleType    `json:"rule"`
	Canvas eventqueue.CanvasID `json:"canvas_id"`
	Module string              `json:"module"`
	Name   string              `json:"name"`
	Since  time.Time           `json:"created_at"`
}

func listRulesCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the rules that hold handlers back",
		Long:    "List the rules that hold handlers back. pause and block add them, unpause and unblock lift them.",
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
			return p.writeRules(rules)
		})
	}
	return cmd
}

func (p *program) writeRules(rules []control.Rule) error {
	doc := struct {
		Rules []ruleDoc `json:"rules"`
	}{rowsOf(rules, func(r control.Rule) ruleDoc { return ruleDoc{r.Type, r.Canvas, r.Module, r.Name, r.CreatedAt.UTC()} })}
	rows := tableOf(rules, []string{"RULE", "CANVAS", "MODULE", "NAME", "SINCE"}, func(r control.Rule) []string {
		return []string{string(r.Type), r.Canvas.String(), printing.Printable(r.Module), printing.Printable(r.Name), printing.Time(r.CreatedAt)}
	})
	return p.write(doc, func(w io.Writer) { printing.List(w, rows, "rules") })
}
