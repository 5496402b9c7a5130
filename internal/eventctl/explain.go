package eventctl

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
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
				return p.writeExplanation(e)
			})
		},
	}
}

type reasonDoc struct {
	Label  machine.Label `json:"label"`
	Why    string        `json:"why"`
	Remedy string        `json:"remedy"`
}

func (p *program) writeExplanation(e inspect.Explanation) error {
	doc := struct {
		ID      eventqueue.EventID `json:"id"`
		AsOf    time.Time          `json:"as_of"`
		Reasons []reasonDoc        `json:"reasons"`
		// Original is the event that it repeats.
		Original *eventqueue.EventID `json:"replayed_from,omitempty"`
	}{e.ID, e.AsOf.UTC(), rowsOf(e.Reasons, func(r inspect.Reason) reasonDoc { return reasonDoc(r) }), originalOf(e.Shown.Attributes())}
	return p.write(doc, func(w io.Writer) {
		for i, r := range e.Reasons {
			if i == 1 {
				_, _ = fmt.Fprintln(w, "\nAfter that:")
			}
			_, _ = fmt.Fprintf(w, "%s\n  %s\n", printing.PrintableLines(r.Why), printing.PrintableLines(r.Remedy))
		}
		writeOriginal(w, operate.OriginalOf(e.Shown.Attributes()))
	})
}
