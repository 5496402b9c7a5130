package eventctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/humantime"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// topFlags are the flags of top.
type topFlags struct {
	since, every time.Duration
	rows         int
}

func topCommand(p *program) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what happens now, drawn anew every few seconds on a terminal",
		Long: "Show what programs have counted of each handler in the last minutes, the busiest first: how many\n" +
			"events were emitted, and how many runs COMPLETED, FAILED for good, or are RETRIED; WAIT is from\n" +
			"when an event was due to its start, RUN is how long its handler ran. PENDING is how many events\n" +
			"have not ended, estimated if they are many, and OLDEST DUE for how long the oldest event that no\n" +
			"worker runs has been due: cron counts these once a minute, and COUNTED is the minute in which it\n" +
			"did. A 0 holds until something happens; another number that is older than some minutes is not\n" +
			"shown. Programs hand in their counts once a minute, so that this costs the database little, and\n" +
			"reads no event. On a terminal it goes on until Ctrl-C; otherwise it prints once.",
		Example: "  eventctl top\n" +
			"  eventctl top --since 15m --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		Args: cobra.NoArgs,
	}
	flags := addFilter(cmd)
	cmd.Flags().DurationVar(&f.since, "since", 5*time.Minute, "show what was counted in the last `duration`")
	cmd.Flags().DurationVar(&f.every, "every", 5*time.Second, "`duration` between two drawings")
	cmd.Flags().IntVar(&f.rows, "limit", 20, "show no more than `n` handlers")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		switch {
		case err != nil:
			return err
		case f.every < time.Second:
			return badInput(errors.New("--every must be at least 1s"))
		case f.rows < 1:
			return badInput(errors.New("--limit must be at least 1"))
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error { return p.top(cmd.Context(), reader, filter, f) })
	}
	return cmd
}

// top prints once or, on a terminal, until ctx ends.
func (p *program) top(ctx context.Context, reader *inspect.Reader, filter inspect.Filter, f topFlags) error {
	for {
		sums, err := counted(ctx, reader, filter, f.since)
		switch {
		case err != nil && ctx.Err() != nil && p.OnTerminal():
			return nil // Ctrl-C came while it was reading
		case err != nil:
			return err
		}
		slices.SortStableFunc(sums, func(a, b inspect.Minute) int { return cmp.Compare(b.Events(), a.Events()) })
		shown := sums[:min(f.rows, len(sums))]
		if !p.OnTerminal() {
			return writeList(p, view.ListOf(shown, view.CountsOf), noCounts, countsHeading, countsCells)
		}
		err = p.Draw(func(w io.Writer) {
			writeTop(w, sums, f)
			printing.List(w, tableOf(view.All(shown, view.CountsOf), countsHeading, countsCells), noCounts)
		})
		if err != nil {
			return failed(err)
		}
		select {
		case <-time.After(f.every):
		case <-ctx.Done():
			return nil
		}
	}
}

// writeTop writes the line above the table.
func writeTop(w io.Writer, sums []inspect.Minute, f topFlags) {
	var all inspect.Minute
	for i := range sums {
		all.Merge(&sums[i].Counts)
	}
	if len(sums) > 0 {
		all.AsOf = sums[0].AsOf
		_, _ = fmt.Fprintf(w, "%s  ", humantime.Time(all.AsOf))
	}
	_, _ = fmt.Fprintf(w, "last %s: %s, %d emitted, %d completed, %d failed, %d retried, %d cancelled\n\n", humantime.Age(f.since),
		printing.Plural(len(sums), "handler"), all.Emitted, all.Completed, all.Failed, all.Retried, all.Cancelled)
}
