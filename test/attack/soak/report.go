package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
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
	case !r.judged() || !f.trend.judged:
		verdict = "unjudged"
	case f.trend.grows:
		verdict = "GROWS"
	}
	return append(row, u.format(f.trend.end), fmt.Sprintf("%+.2f", f.trend.tau), verdict)
}

// details is what the terminal shows before the verdict.
func (r *result) details() string {
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

// markdown is the run as a page.
func (r *result) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Soak run\n\n    cd test/attack && go run ./soak -hours %g -rate %d -every %s\n\n    %s\n\n", r.opts.hours, r.opts.rate, r.opts.every, r.line())
	fmt.Fprintf(&b, "%s; %s; Postgres %s with fsync and a checkpoint each minute, the official Pub/Sub emulator. Lock timeout %s, relay interval %s, relay lost after %s, concurrency %s.\n\n",
		machine(), runtime.Version(), r.postgres, lockTimeout, relayInterval, relayLostAfter, concurrency)
	b.WriteString("| fault | times |\n|---|--:|\n")
	for _, what := range slices.Sorted(maps.Keys(r.faults)) {
		fmt.Fprintf(&b, "| %s | %d |\n", what, r.faults[what])
	}
	fmt.Fprintf(&b, "\n| what | number |\n|---|--:|\n")
	for _, row := range []struct {
		what   string
		number int
	}{
		{"events accepted", r.account.accepted}, {"lost", r.account.losses}, {"stuck", r.stuck}, {"failed for good", r.failed},
		{"runs of what had been done before", r.account.again}, {"calls of emit that failed", r.account.refused},
		{"events of those calls that ran all the same", r.account.unsure}, {"cron slots done", r.account.ticks},
		{"looks at the database during which it was down", r.missed},
	} {
		fmt.Fprintf(&b, "| %s | %d |\n", row.what, row.number)
	}
	fmt.Fprintf(&b, "\nMedians of the quarters of the load; the first is the warm-up. Trend is Kendall's tau over the last three.\n\n")
	fmt.Fprintf(&b, "| %s |\n|---|%s---|\n", strings.Join(heads(), " | "), strings.Repeat("--:|", len(heads())-2))
	for _, f := range r.figures {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(f), " | "))
	}
	return b.String()
}

// machine describes the machine in a few words; what /proc does not say is left
// out.
func machine() string {
	model := "unknown processor"
	if line, ok := procLine("/proc/cpuinfo", "model name"); ok {
		model = line
	}
	words := fmt.Sprintf("%d CPUs (%s)", runtime.NumCPU(), model)
	var kilobytes float64
	if line, ok := procLine("/proc/meminfo", "MemTotal"); ok {
		if _, err := fmt.Sscan(line, &kilobytes); err == nil {
			words += fmt.Sprintf(", %.0f GiB of memory", kilobytes/1024/1024)
		}
	}
	return words
}

// procLine finds the value after the first "name :" of a file.
func procLine(path, name string) (string, bool) {
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = file.Close() }() // it was only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
