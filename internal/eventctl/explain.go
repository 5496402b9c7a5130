package eventctl

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func explainCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID",
		Short: "Say why an event does not run now, and what would change that",
		Long: "Say in one sentence why an event does not run now, or that it does or how it ended, and in one more what would\n" +
			"change that. What would keep the event after that follows below. It walks the state machine as a worker would, and\n" +
			"claims nothing.",
		Example: "  eventctl explain 17",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
				e, err := reader.Explain(cmd.Context(), ids[0])
				if err != nil {
					return failed(fmt.Errorf("query event %s: %w", ids[0], err))
				}
				if e.Because().Label == machine.EventMissing {
					return notFound("event %s: %s", ids[0], e.Because().Why)
				}
				return p.writeExplanation(view.ExplanationOf(e))
			})
		},
	}
}

func (p *program) writeExplanation(e view.Explanation) error {
	return p.write(e, func(w io.Writer) {
		for i, r := range e.Items {
			if i == 1 {
				_, _ = fmt.Fprintln(w, "\nAfter that:")
			}
			_, _ = fmt.Fprintf(w, "%s\n  %s\n", printing.PrintableLines(r.Why), printing.PrintableLines(r.Remedy))
		}
		if e.Original != 0 {
			_, _ = fmt.Fprintf(w, "\nIt repeats event %s, which was replayed.\n", e.Original)
		}
	})
}
