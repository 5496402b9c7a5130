package eventctl

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

func listWebhooksCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the sources of webhooks, with what they received and refused in the last day",
		Long: "List the sources that programs serve or have served, with their requests of the last hour and the last day, and\n" +
			"how many of those of the day were refused, and why. Programs hand in their counts once a minute.",
		Example: "  eventctl webhook list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
				sources, err := received.NewReader(store.Schema(), store.Pool()).Sources(cmd.Context())
				if err != nil {
					return failed(fmt.Errorf("list the sources of webhooks: %w", err))
				}
				return p.writeSources(sources)
			})
		},
	}
}

// sourceDoc is a source of webhooks, in JSON.
type sourceDoc struct {
	Source     string                    `json:"source"`
	Canvas     *eventqueue.CanvasID      `json:"canvas_id"` // null: all canvases
	Scheme     string                    `json:"scheme"`
	ServedAt   time.Time                 `json:"served_at"`
	ReceivedAt *time.Time                `json:"received_at"`
	Hour       map[webhook.Outcome]int64 `json:"hour"`
	Day        map[webhook.Outcome]int64 `json:"day"`
	Refusals   []received.Refusal        `json:"refusals"`
}

func sourceDocOf(s received.Source) sourceDoc {
	doc := sourceDoc{s.Name, nil, s.Scheme, s.ServedAt.UTC(), printing.UTC(s.ReceivedAt), s.Hour, s.Day, s.Refusals}
	if s.Canvas != (eventqueue.CanvasID{}) {
		doc.Canvas = &s.Canvas
	}
	for i := range doc.Refusals {
		doc.Refusals[i].At = doc.Refusals[i].At.UTC()
	}
	return doc
}

func (p *program) writeSources(sources []received.Source) error {
	doc := struct {
		Sources []sourceDoc `json:"sources"`
	}{rowsOf(sources, sourceDocOf)}
	rows := tableOf(sources, []string{"SOURCE", "CANVAS", "SCHEME", "LAST RECEIVED", "HOUR", "DAY", "REFUSED"}, func(s received.Source) []string {
		canvas, last := "all", "-"
		if s.Canvas != (eventqueue.CanvasID{}) {
			canvas = s.Canvas.String()
		}
		if s.ReceivedAt != nil {
			last = printing.When(*s.ReceivedAt, s.AsOf)
		}
		return []string{printing.Printable(s.Name), canvas, printing.Printable(s.Scheme), last, fmt.Sprint(requestsOf(s.Hour)), fmt.Sprint(requestsOf(s.Day)), refusedText(s.Day)}
	})
	return p.write(doc, func(w io.Writer) { printing.List(w, rows, "sources of webhooks") })
}

func requestsOf(counts map[webhook.Outcome]int64) int64 {
	return received.Sum(counts, false) + received.Sum(counts, true)
}

// refusedText says how many requests were refused, by reason.
func refusedText(counts map[webhook.Outcome]int64) string {
	var texts []string
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		if outcome.Refused() {
			texts = append(texts, fmt.Sprintf("%d %s", counts[outcome], printing.Printable(string(outcome))))
		}
	}
	if len(texts) == 0 {
		return "-"
	}
	return strings.Join(texts, ", ")
}
