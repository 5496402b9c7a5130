package eventctl

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
)

func listRateLimitsCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List rate limits, and what has been counted of them",
		Long: "List the rate limits, and what has been counted in the current minute and on the current day.\n" +
			"LATER is an estimate of how many events wait for a later minute or day.",
		Example: "  eventctl limit rate list --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args:    cobra.NoArgs,
	}
	addCanvasFilter(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		only, err := canvasFilter(cmd)
		if err != nil {
			return err
		}
		return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
			all, err := store.RateLimits(cmd.Context(), only)
			if err != nil {
				return failed(fmt.Errorf("list the rate limits: %w", err))
			}
			return p.writeRateLimits(all)
		})
	}
	return cmd
}

// rateStatusDoc is a limit with its counts, in JSON.
type rateStatusDoc struct {
	rateLimitDoc
	MinuteUsed int64 `json:"minute_used"`
	DayUsed    int64 `json:"day_used"`
	Waiting    int64 `json:"waiting"`
}

func (p *program) writeRateLimits(all []operate.RateStatus) error {
	doc := struct {
		Limits []rateStatusDoc `json:"limits"`
	}{rowsOf(all, func(l operate.RateStatus) rateStatusDoc {
		return rateStatusDoc{rateLimitDocOf(l.RateLimit), l.MinuteUsed, l.DayUsed, l.Waiting}
	})}
	rows := tableOf(all, []string{"CANVAS", "MODULE", "NAME", "MINUTE", "DAY", "MODE", "LATER"}, rateStatusCells)
	return p.write(doc, func(w io.Writer) { printing.List(w, rows, "rate limits") })
}

func rateStatusCells(l operate.RateStatus) []string {
	used := func(used int64, limit int) string {
		if limit == 0 {
			return "-"
		}
		return fmt.Sprintf("%d/%d", used, limit)
	}
	module, name := "-", "-"
	if !l.WholeCanvas() {
		module, name = printing.Printable(l.Module), printing.Printable(l.Name)
	}
	return []string{l.Canvas.String(), module, name, used(l.MinuteUsed, l.PerMinute), used(l.DayUsed, l.PerDay), string(l.Mode), fmt.Sprint(l.Waiting)}
}
