package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// result is what a run came to.
type result struct {
	judgement  *judgement
	loaded     time.Duration
	faults     *faults
	emitters   *emitters
	rulesAdded int
	slots      int
	refusals   int // of the operator
	host       host
	remarks    []string
}

// line is the verdict.
func (r *result) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "chaos: minutes=%.1f events=%d kills=%d", r.loaded.Minutes(), r.judgement.figures.events, r.faults.kills())
	for _, c := range classes() {
		// What the other classes leave is shown only when it is there.
		if n := r.judgement.count(c); c.alwaysShown() || n > 0 {
			fmt.Fprintf(&b, " %s=%d", c, n)
		}
	}
	return b.String()
}

// maxShown is how many violations of a class are shown with their evidence, and
// maxNamed how many more in one ordering group each.
const (
	maxShown = 5
	maxNamed = 100
)

func (r *result) reportViolations(w io.Writer) {
	shown := map[class]int{}
	for _, v := range r.judgement.violations {
		if shown[v.class]++; shown[v.class] > maxShown+maxNamed {
			continue
		}
		_, _ = fmt.Fprintf(w, "%s: %s\n", v.class, v.what) // nowhere else to say it
		if shown[v.class] > maxShown {
			continue
		}
		for _, line := range v.evidence {
			_, _ = fmt.Fprintf(w, "    %s\n", line)
		}
	}
	for _, c := range classes() {
		if more := shown[c] - maxShown - maxNamed; more > 0 {
			_, _ = fmt.Fprintf(w, "%s: and %d more\n", c, more)
		}
	}
}

// report is the run as a page in Markdown.
func (r *result) report(o options) string {
	var b strings.Builder
	f := r.judgement.figures
	fmt.Fprintf(&b, "    cd test/attack && go run ./chaos -minutes %g -seed %d -rate %d\n\n    %s\n\n", o.minutes, o.seed, o.rate, r.line())
	fmt.Fprintf(&b, "On %s. Lock timeout %s, relay interval %s, relay lost after %s.\n\n", r.host, lockTimeout, relayInterval, relayLostAfter)
	table(&b, "what was done to it", "times", r.planned())
	table(&b, "how events were emitted", "events", r.emitted())
	table(&b, "what the queue did", "number", []entryOf{
		{"events that entered", f.events},
		{"completed", f.completed},
		{"of these in a transaction of the handler's", f.completedInTx},
		{"failed, as their handlers wanted", f.failed},
		{"cancelled by an operator while workers ran", f.cancelled},
		{"delayed or tried now by an operator", f.operated},
		{"events that an operator was refused, because they ran", r.refusals},
		{"runs of handlers", f.runs},
		{"claims", f.claims},
		{"claims that took over an expired lock, each explained by a fault of the holder", f.takeovers},
		{"renewals of locks", f.renewals},
		{"given back (retry, snooze, stop)", f.givenBack},
		{"expired locks that were taken back for other events of a group", f.takenBack},
		{"events with an ordering key", f.ordered},
		{"of these run out of order", r.judgement.count(order)},
		{"events with a unique key", f.unique},
		{"emits that were repeats of these", len(r.emitters.repeats)},
		{"unique keys that did not hold, or held too long", r.judgement.count(unique)},
		{"events under a concurrency limit", f.limited},
		{"of these run above the limit", r.judgement.count(limits)},
		{"events under a rate limit", f.rated},
		{"runs that rate limits counted", f.granted},
		{"claims that rate limits put off", f.putOff},
		{"runs that no rate limit had granted, or windows with too many", r.judgement.count(rates)},
		{"cron slots", r.slots},
		{"events that a rule held back before their first claim", f.heldBack},
		{"rules added and lifted", r.rulesAdded},
	})
	table(&b, "what explains extra runs and runs that were cut short", "times", sorted(f.allowances))
	fmt.Fprintf(&b, "From emit to end, delays, retries, pauses and outages included: at most %s.\n\n", f.longest.Round(time.Millisecond))
	if n := len(f.waits); n > 0 {
		at := func(share float64) time.Duration {
			return f.waits[int((1-share)*float64(n-1))].lasted.Round(time.Millisecond)
		}
		fmt.Fprintf(&b, "From due to the first claim where no rule held the event back, outages and lost notifications included: median %s, 99 %% %s, longest %s.\n\n", at(0.5), at(0.99), at(1))
	}
	for _, remark := range r.remarks {
		fmt.Fprintf(&b, "- remarkable: %s\n", remark)
	}
	r.reportViolations(&b)
	if len(r.judgement.violations) > 0 && len(r.judgement.slowest) > 0 {
		fmt.Fprintf(&b, "\nThe events that waited longest:\n\n    %s\n", strings.Join(r.judgement.slowest, "\n    "))
	}
	return b.String()
}

// entryOf is a row of a table.
type entryOf struct {
	what   string
	number int
}

func table(b *strings.Builder, what, number string, rows []entryOf) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "| %s | %s |\n|---|--:|\n", what, number)
	for _, row := range rows {
		fmt.Fprintf(b, "| %s | %d |\n", row.what, row.number)
	}
	b.WriteString("\n")
}

func (r *result) planned() []entryOf {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	var rows []entryOf
	for _, f := range frequencies() {
		rows = append(rows, entryOf{string(f.kind), r.faults.counts[f.kind]})
	}
	unplanned := map[string]int{}
	for _, f := range r.faults.all {
		if strings.HasPrefix(f.what, "standstill") || strings.HasPrefix(f.what, "Postgres does") {
			unplanned[f.what+" (not planned)"]++
		}
	}
	return append(rows, sorted(unplanned)...)
}

func (r *result) emitted() []entryOf {
	rows := sorted(r.emitters.forms)
	return append(rows, entryOf{"calls that failed, with an outcome that was found out at the end", r.emitters.failures})
}

func sorted(counts map[string]int) []entryOf {
	var rows []entryOf
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		rows = append(rows, entryOf{what, counts[what]})
	}
	return rows
}
