package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"eventsv2/test/attack/harness"
)

// heads are the columns of the table of measures.
func heads() []string {
	return []string{"measure", "start", "quarter 1", "quarter 2", "quarter 3", "quarter 4", "end", "trend", "verdict"}
}

// cells are a row of the table of measures.
func (r *result) cells(f figure) []string {
	u := f.measure.kind.unit
	row := []string{f.measure.String(), u.format(f.trend.start)}
	for _, m := range f.trend.medians {
		row = append(row, u.format(m))
	}
	verdict := "no growth"
	switch {
	case !r.decided() || !f.trend.decided:
		verdict = "undecided"
	case f.trend.grows:
		verdict = "GROWS"
	}
	return append(row, u.format(f.trend.end), fmt.Sprintf("%+.2f", f.trend.tau), verdict)
}

// Details is what the terminal shows before the verdict.
func (r *result) Details() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(heads(), "\t")) // a strings.Builder takes everything
	for _, f := range r.figures {
		_, _ = fmt.Fprintln(w, strings.Join(r.cells(f), "\t"))
	}
	_ = w.Flush()
	for _, line := range r.account.lost {
		fmt.Fprintf(&b, "lost: %s\n", line)
	}
	if more := r.account.losses - len(r.account.lost); more > 0 {
		fmt.Fprintf(&b, "lost: and %d more\n", more)
	}
	return b.String()
}

// Page is the run as a page in Markdown.
func (r *result) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Soak run\n\n    cd test/attack && go run ./soak -hours %g -rate %d -every %s\n\n    %s\n\n", r.opts.Length, r.opts.Rate, r.opts.every, r.Line())
	fmt.Fprintf(&b, "%s, a checkpoint each minute. Lock timeout %s, relay interval %s, relay lost after %s, concurrency %s.\n\n",
		r.where, lockTimeout, relayInterval, relayLostAfter, concurrency)
	b.WriteString(harness.Table("fault", "times", harness.Rows(r.faults)))
	b.WriteString(harness.Table("what", "number", []harness.Row{
		{"events accepted", r.account.accepted}, {"lost", r.account.losses}, {"stuck", r.stuck}, {"failed for good", r.failed},
		{"runs of what had been done before", r.account.again}, {"calls of emit that failed", r.account.refused},
		{"events of those calls that ran all the same", r.account.unsure}, {"cron slots done", r.account.ticks},
		{"queries of the database during which it was down", r.missed},
	}))
	fmt.Fprintf(&b, "Medians of the quarters of the load; the first is the warm-up. Trend is Kendall's tau over the last three.\n\n")
	fmt.Fprintf(&b, "| %s |\n|---|%s---|\n", strings.Join(heads(), " | "), strings.Repeat("--:|", len(heads())-2))
	for _, f := range r.figures {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(f), " | "))
	}
	return b.String()
}
