package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/harness"
)

// result is what a run came to.
type result struct {
	opts       options
	findings   *findings
	loaded     time.Duration
	faults     *faults
	emitters   *emitters
	rulesAdded int
	slots      int
	refusals   int // of the operator
	where      string
	defaults   map[string]string // of other programs, at the end
	remarks    []string
	growth     *growth.Report // of a steady run
}

// Good reports whether nothing was found.
func (r *result) Good() bool {
	return len(r.findings.violations) == 0 && (r.growth == nil || len(r.growth.Growing()) == 0)
}

// Line is the verdict.
func (r *result) Line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "chaos: minutes=%.1f events=%d kills=%d", r.loaded.Minutes(), r.findings.figures.events, r.faults.kills())
	for _, c := range classes() {
		// What the other classes leave is shown only when it is there.
		if n := r.findings.count(c); c.alwaysShown() || n > 0 {
			fmt.Fprintf(&b, " %s=%d", c, n)
		}
	}
	if r.growth != nil {
		fmt.Fprintf(&b, " growth=%s", r.growth.Verdict())
	}
	return b.String()
}

// maxShown is how many violations of a class are shown with their evidence, and
// maxNamed how many more in one ordering group each.
const (
	maxShown = 5
	maxNamed = 100
)

// Details are what became of each measure of a steady run, and the violations, with the evidence of
// the first ones.
func (r *result) Details() string {
	var b strings.Builder
	if r.growth != nil {
		b.WriteString(r.growth.Table())
	}
	shown := map[class]int{}
	for _, v := range r.findings.violations {
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

// Page is the run as a page in Markdown.
func (r *result) Page() string {
	var b strings.Builder
	f, o, steady := r.findings.figures, r.opts, ""
	if o.steady {
		steady = " -steady"
	}
	fmt.Fprintf(&b, "    cd test/attack && go run ./chaos -minutes %g -seed %d -rate %d%s\n\n    %s\n\n", o.Length, o.seed, o.Rate, steady, r.Line())
	fmt.Fprintf(&b, "On %s. Lock timeout %s, relay interval %s, relay lost after %s.\n\n", r.where, lockTimeout, relayInterval, relayLostAfter)
	b.WriteString(harness.Table("what was done to it", "times", r.planned()))
	b.WriteString(harness.Table("how events were emitted", "events", r.emitted()))
	b.WriteString(harness.Table("what the queue did", "number", []harness.Row{
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
		{"of these run out of order", r.findings.count(order)},
		{"events with a unique key", f.unique},
		{"emits that were repeats of these", len(r.emitters.repeats)},
		{"unique keys that did not hold, or held too long", r.findings.count(unique)},
		{"events under a concurrency limit", f.limited},
		{"of these run above the limit", r.findings.count(limits)},
		{"events under a rate limit", f.rated},
		{"runs that rate limits counted", f.granted},
		{"claims that rate limits put off", f.putOff},
		{"runs that no rate limit had granted, or windows with too many", r.findings.count(rates)},
		{"typed events, and events of their handlers", f.chained},
		{"of these there too often or not at all", r.findings.count(chains)},
		{"rows by hand that nobody can run, and nobody has touched", f.untouched},
		{"cron slots", r.slots},
		{"events that a rule held back before their first claim", f.heldBack},
		{"rules added and lifted", r.rulesAdded},
	}))
	b.WriteString(harness.Table("what explains extra runs and runs that were cut short", "times", harness.Rows(f.allowances)))
	fmt.Fprintf(&b, "From emit to end, delays, retries, pauses and outages included: at most %s.\n\n", f.longest.Round(time.Millisecond))
	if n := len(f.waits); n > 0 {
		at := func(share float64) time.Duration {
			return f.waits[int((1-share)*float64(n-1))].lasted.Round(time.Millisecond)
		}
		fmt.Fprintf(&b, "From due to the first claim where no rule held the event back, outages and lost notifications included: median %s, 99 %% %s, longest %s.\n\n", at(0.5), at(0.99), at(1))
	}
	for _, name := range slices.Sorted(maps.Keys(r.defaults)) {
		fmt.Fprintf(&b, "- a default of the database or the role at the end: %s = %s\n", name, r.defaults[name])
	}
	for _, remark := range r.remarks {
		fmt.Fprintf(&b, "- remarkable: %s\n", remark)
	}
	b.WriteString(r.Details())
	if len(r.findings.violations) > 0 && len(r.findings.slowest) > 0 {
		fmt.Fprintf(&b, "\nThe events that waited longest:\n\n    %s\n", strings.Join(r.findings.slowest, "\n    "))
	}
	return b.String()
}

func (r *result) planned() []harness.Row {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	var rows []harness.Row
	for _, f := range frequencies() {
		rows = append(rows, harness.Row{string(f.kind), r.faults.counts[f.kind]})
	}
	unplanned := map[string]int{}
	for _, f := range r.faults.all {
		if strings.HasPrefix(f.what, "standstill") || strings.HasPrefix(f.what, "Postgres does") {
			unplanned[f.what+" (not planned)"]++
		}
	}
	return append(rows, harness.Rows(unplanned)...)
}

func (r *result) emitted() []harness.Row {
	rows := harness.Rows(r.emitters.forms)
	return append(rows, harness.Row{"calls that failed, with an outcome that was found out at the end", r.emitters.failures})
}
