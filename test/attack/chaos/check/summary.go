package check

import (
	"fmt"
	"strings"
	"time"

	"eventsv2/test/attack/harness"
)

// maxShown is how many violations of a class are shown with their evidence, and
// maxNamed how many more in one ordering group each.
const (
	maxShown = 5
	maxNamed = 100
)

// Details are the violations, with the evidence of the first ones.
func (j *Findings) Details() string {
	var b strings.Builder
	shown := map[class]int{}
	for _, v := range j.violations {
		if shown[v.class]++; shown[v.class] > maxShown+maxNamed {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", v.class, v.what)
		if shown[v.class] > maxShown {
			continue
		}
		for _, line := range v.evidence {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	for _, c := range classes() {
		if more := shown[c] - maxShown - maxNamed; more > 0 {
			fmt.Fprintf(&b, "%s: and %d more\n", c, more)
		}
	}
	return b.String()
}

// Good reports whether nothing was found.
func (j *Findings) Good() bool { return len(j.violations) == 0 }

// Events is how many there were.
func (j *Findings) Events() int { return j.figures.events }

// Counts are the classes of the verdict. What the others leave is shown only when it is there.
func (j *Findings) Counts() string {
	var b strings.Builder
	for _, c := range classes() {
		if n := j.count(c); c.alwaysShown() || n > 0 {
			fmt.Fprintf(&b, " %s=%d", c, n)
		}
	}
	return b.String()
}

// Table is what the queue did, in Markdown, with some more rows.
func (j *Findings) Table(more []harness.Row) string {
	var b strings.Builder
	f := j.figures
	b.WriteString(harness.Table("what the queue did", "number", append([]harness.Row{
		{"events that entered", f.events},
		{"completed", f.completed},
		{"of these in a transaction of the handler's", f.completedInTx},
		{"failed, as their handlers wanted", f.failed},
		{"cancelled by an operator while workers ran", f.cancelled},
		{"delayed or tried now by an operator", f.operated},
		{"runs of handlers", f.runs},
		{"claims", f.claims},
		{"claims that took over an expired lock, each explained by a fault of the holder", f.takeovers},
		{"renewals of locks", f.renewals},
		{"given back (retry, snooze, stop)", f.givenBack},
		{"expired locks that were taken back for other events of a group", f.takenBack},
		{"events with an ordering key", f.ordered},
		{"of these run out of order", j.count(order)},
		{"events with a unique key", f.unique},
		{"unique keys that did not hold, or held too long", j.count(unique)},
		{"events under a concurrency limit", f.limited},
		{"of these run above the limit", j.count(limits)},
		{"events under a rate limit", f.rated},
		{"runs that rate limits counted", f.granted},
		{"claims that rate limits put off", f.putOff},
		{"runs that no rate limit had granted, or windows with too many", j.count(rates)},
		{"typed events, and events of their handlers", f.chained},
		{"of these there too often or not at all", j.count(chains)},
		{"rows by hand that nobody can run, and nobody has touched", f.untouched},
		{"events that a rule held back before their first claim", f.heldBack},
	}, more...)))
	b.WriteString(harness.Table("what explains extra runs and runs that were cut short", "times", harness.Rows(f.allowances)))
	fmt.Fprintf(&b, "From emit to end, delays, retries, pauses and outages included: at most %s.\n\n", f.longest.Round(time.Millisecond))
	if n := len(f.waits); n > 0 {
		at := func(share float64) time.Duration {
			return f.waits[int((1-share)*float64(n-1))].lasted.Round(time.Millisecond)
		}
		fmt.Fprintf(&b, "From due to the first claim where no rule held the event back, outages and lost notifications included: median %s, 99 %% %s, longest %s.\n\n", at(0.5), at(0.99), at(1))
	}
	return b.String()
}

// Waited are the histories of the events that waited longest, where something was found.
func (j *Findings) Waited() string {
	if j.Good() || len(j.slowest) == 0 {
		return ""
	}
	return fmt.Sprintf("\nThe events that waited longest:\n\n    %s\n", strings.Join(j.slowest, "\n    "))
}
