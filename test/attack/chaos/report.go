package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/harness"
)

// result is what a run came to.
type result struct {
	opts       options
	findings   *check.Findings
	loaded     time.Duration
	attacks    *tally
	unplanned  map[string]int // standstills
	emitted    []harness.Row  // in each way
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
	return r.findings.Good() && (r.growth == nil || len(r.growth.Growing()) == 0)
}

// Line is the verdict.
func (r *result) Line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "chaos: minutes=%.1f events=%d kills=%d%s", r.loaded.Minutes(), r.findings.Events(), r.attacks.kills(), r.findings.Counts())
	if r.growth != nil {
		fmt.Fprintf(&b, " growth=%s", r.growth.Verdict())
	}
	return b.String()
}

// Page is the run as a page in Markdown.
func (r *result) Page() string {
	var b strings.Builder
	o, steady := r.opts, ""
	if o.steady {
		steady = " -steady"
	}
	fmt.Fprintf(&b, "    cd test/attack && go run ./chaos -minutes %g -seed %d -rate %d%s\n\n    %s\n\n", o.minutes, o.seed, o.rate, steady, r.Line())
	fmt.Fprintf(&b, "On %s. Lock timeout %s, relay interval %s, relay lost after %s.\n\n", r.where, check.LockTimeout, relayInterval, relayLostAfter)
	b.WriteString(harness.Table("what was done to it", "times", r.planned()))
	b.WriteString(harness.Table("how events were emitted", "events", r.emitted))
	b.WriteString(r.findings.Table([]harness.Row{
		{"events that an operator was refused, because they ran", r.refusals},
		{"cron slots", r.slots},
		{"rules added and lifted", r.rulesAdded},
	}))
	for _, name := range slices.Sorted(maps.Keys(r.defaults)) {
		fmt.Fprintf(&b, "- a default of the database or the role at the end: %s = %s\n", name, r.defaults[name])
	}
	for _, remark := range r.remarks {
		fmt.Fprintf(&b, "- remarkable: %s\n", remark)
	}
	b.WriteString(r.Details())
	return b.String() + r.findings.Waited()
}

func (r *result) planned() []harness.Row {
	var rows []harness.Row
	counts := r.attacks.all()
	for _, f := range frequencies() {
		rows = append(rows, harness.Row{string(f.kind), counts[f.kind]})
	}
	return append(rows, harness.Rows(r.unplanned)...)
}

// Details are what became of each measure of a steady run, and the violations.
func (r *result) Details() string {
	if r.growth != nil {
		return r.growth.Table() + r.findings.Details()
	}
	return r.findings.Details()
}
