package eventctl

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
)

// statsDoc has the counts of one handler, in JSON.
type statsDoc struct {
	Canvas eventqueue.CanvasID     `json:"canvas_id"`
	Module string                  `json:"module"`
	Name   string                  `json:"name"`
	Depth  int64                   `json:"depth"`
	States map[inspect.State]int64 `json:"states"`
	// OldestDue is in seconds.
	OldestDue *float64           `json:"oldest_due_seconds"`
	Failed    int64              `json:"failed"`
	Cancelled int64              `json:"cancelled"`
	Rules     []operate.RuleType `json:"rules"`
}

func statsCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count what waits, runs and failed, for each handler",
		Long: "Count the events of each handler that has any, or a rule, or failed or cancelled events in event_log. DEPTH is\n" +
			"how many have not ended; the states (see eventctl list --help) add up to it. OLDEST DUE is for\n" +
			"how long the oldest event that no worker runs has been due. FAILED and CANCELLED count event_log. This reads\n" +
			"both tables completely, unless --canvas is given.\n\n" +
			"With --since, show instead what programs have counted in that time, which reads no event: see\n" +
			"eventctl top --help.",
		Example: "  eventctl stats\n" +
			"  eventctl stats --since 1h\n" +
			"  eventctl stats --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --json",
		Args: cobra.NoArgs,
	}
	flags := addFilter(cmd)
	var since time.Duration
	cmd.Flags().DurationVar(&since, "since", 0, "show what was counted in the last `duration`, as in 1h")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("since") {
			return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
				return p.showMinutes(cmd.Context(), reader, filter, since)
			})
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			stats, err := reader.Stats(cmd.Context(), filter)
			if err != nil {
				return failed(fmt.Errorf("count the events: %w", err))
			}
			return p.writeStats(stats)
		})
	}
	return cmd
}

func (p *program) writeStats(stats []inspect.HandlerStats) error {
	doc := struct {
		Handlers []statsDoc `json:"handlers"`
	}{rowsOf(stats, statsDocOf)}
	heading := []string{"CANVAS", "MODULE", "NAME", "DEPTH"}
	for _, state := range inspect.States() {
		heading = append(heading, strings.ToUpper(string(state)))
	}
	rows := tableOf(stats, append(heading, "OLDEST DUE", "FAILED", "CANCELLED"), statsCells)
	return p.write(doc, func(w io.Writer) { printing.List(w, rows, "events, no rules, nothing failed") })
}

func statsCells(h inspect.HandlerStats) []string {
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	row := []string{h.Canvas.String(), printing.Printable(h.Module), printing.Printable(h.Name), count(h.Depth)}
	for _, state := range inspect.States() {
		row = append(row, count(h.ByState[state]))
	}
	oldest := "-"
	if h.HasDue {
		oldest = printing.Age(h.OldestBy)
	}
	return append(row, oldest, count(h.Failed), count(h.Cancelled))
}

func statsDocOf(h inspect.HandlerStats) statsDoc {
	doc := statsDoc{Canvas: h.Canvas, Module: h.Module, Name: h.Name, Depth: h.Depth, Failed: h.Failed, Cancelled: h.Cancelled,
		States: map[inspect.State]int64{}, Rules: []operate.RuleType{}}
	for _, state := range inspect.States() {
		doc.States[state] = h.ByState[state]
	}
	if h.HasDue {
		doc.OldestDue = new(h.OldestBy.Seconds())
	}
	if h.Paused {
		doc.Rules = append(doc.Rules, operate.PauseRule)
	}
	if h.Blocked {
		doc.Rules = append(doc.Rules, operate.BlockRule)
	}
	return doc
}
