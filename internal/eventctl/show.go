package eventctl

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func showCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one event, its value, and why it runs or does not",
		Long: "Show one event, in the queue or in event_log: its value, its last claim, what its runs have logged, and why it runs or does not.\n" +
			"Control characters in a value are escaped.",
		Example: "  eventctl show 17",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
				explained, err := reader.Explain(cmd.Context(), ids[0])
				if err != nil {
					return failed(fmt.Errorf("query event %s: %w", ids[0], err))
				}
				shown := explained.Shown
				e := view.FoundEvent(shown.Queued, shown.Logged)
				if e == nil {
					return notFound("event %s is neither in the queue nor in event_log: it never was, or it has completed and its history is not kept (RETAIN_HISTORY)", ids[0])
				}
				names, err := reader.CanvasNames(cmd.Context(), []eventqueue.CanvasID{e.Canvas})
				if err != nil {
					return failed(fmt.Errorf("query the name of canvas %s: %w", e.Canvas, err))
				}
				return p.showEvent(*e, names[e.Canvas], shown, view.ExplanationOf(explained).Items)
			})
		},
	}
}

func (p *program) showEvent(e view.Event, canvasName string, shown inspect.Shown, reasons []view.Reason) error {
	attempts := view.AttemptsOf(shown).Items
	doc := struct {
		Event    view.Event     `json:"event"`
		Reasons  []view.Reason  `json:"reasons"`
		Attempts []view.Attempt `json:"attempts"`
	}{e, reasons, attempts}
	whys := view.All(reasons, func(r view.Reason) string { return r.Why })
	rows := factRows("event", e.ID, "canvas", e.Canvas, "canvas name", canvasName, "handler", e.Handler(), "state", e.State, "why", strings.Join(whys, " "))
	rows = append(rows, factRows("ended", e.TimeAndAge(e.EndedAt), "enqueued", e.TimeAndAge(&e.EnqueuedAt), "due", e.TimeAndAge(e.DelayUntil),
		"retries", fmt.Sprintf("%d used, %s", e.Retries, printing.Plural(e.Attempts, "claim")))...)
	if shown.Queued != nil {
		rows = append(rows, factRows("notified", e.Notified())...)
		if e.ClaimID != "" {
			rows = append(rows, factRows("last claim", e.ClaimID+whetherBegun(*shown.Queued))...)
		}
	}
	if h := e.Holder; h != nil {
		rows = append(rows, factRows("held by", fmt.Sprintf("%s, which is %s; started %s, version %s", h.Place(), h.State, e.TimeAndAge(&h.StartedAt), h.Version))...)
	}
	if s := e.Progress; s != nil {
		rows = append(rows, factRows("progress", strings.TrimSuffix(fmt.Sprintf("%d %%, %s", s.Percent(), s.Note), ", ")+", reported "+e.When(&s.At))...)
	}
	rows = append(rows, factRows("key", e.OrderingKey, "priority", e.Priority, "cancelled by", e.Actor, "reason", e.Reason)...)
	return p.write(doc, func(w io.Writer) {
		printing.Table(w, append(rows, originRows(e)...))
		writeAttempts(w, attempts)
		if log := view.LogApart(e.RunLog, attempts); log != "" {
			_, _ = fmt.Fprintf(w, "log of the last run:\n%s\n", printing.PrintableLines(log))
		}
		_, _ = fmt.Fprintf(w, "value, %s:\n%s\n", printing.Plural(e.ValueBytes, "byte"), cmp.Or(e.Encrypted(), string(printing.PrintableJSON(e.Value))))
		if e.Result != nil {
			_, _ = fmt.Fprintf(w, "result, %s:\n%s\n", printing.Plural(len(e.Result), "byte"), printing.PrintableJSON(e.Result))
		}
	})
}

// whetherBegun returns whether the run of a claim has begun, and so how the claim counts if
// its lock expires.
func whetherBegun(e inspect.QueuedEvent) string {
	switch {
	case e.LockedAt == nil:
		return ""
	case e.Begun && e.Company == 1:
		return ", whose run has begun, as the only suspect in its worker: if it is lost, that is a failed attempt"
	case e.Begun:
		return ", whose run has begun: if it is lost, the event is a suspect, and no attempt is used"
	default:
		return ", of which no run is known to have begun: if it is lost, no attempt is used"
	}
}
