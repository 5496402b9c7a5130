package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// checker compares what was recorded with what has to hold.
type checker struct {
	Evidence
	tags      map[string][]*record.Trace
	children  map[string]bool // that must exist, by tag
	rulesOf   map[eventqueue.Scope][]*oracle.Record
	repeatsOf map[eventqueue.EventID][]Repeat
	parents   map[eventqueue.EventID]bool // the typed events of which some handler got its event
	result    Findings
}

// find records a violation. s is nil where it is not about one event.
func (c *checker) find(s *record.Trace, class class, format string, args ...any) {
	v := violation{class: class, what: fmt.Sprintf(format, args...)}
	if s != nil {
		v.what = fmt.Sprintf("event %s: %s", s.ID, v.what)
		v.evidence = c.history(s)
	}
	c.result.violations = append(c.result.violations, v)
}

// maxHistory bounds the lines of one history.
const maxHistory = 80

// history is all that is known of an event, in order, for a report.
func (c *checker) history(s *record.Trace) []string {
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	add := func(at time.Time, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	if s.Entered != nil {
		add(s.Changes[0].At, "entered: %s %s %.200s", s.Entered.Canvas, s.Entered.Handler, s.Entered.Value)
	}
	for _, ch := range s.Changes {
		add(ch.At, "row %c by %s: %s -> %s", ch.Op, ch.Writer, ch.Old, ch.New)
	}
	for _, r := range c.runs[s.ID] {
		add(r.Start, "run starts at %s, attempt %d", r.Process, r.Attempt)
		if r.Ended {
			add(r.End, "run ends at %s, attempt %d: %s", r.Process, r.Attempt, r.Result)
		}
	}
	if len(s.Changes) > 0 {
		from, to := s.Changes[0].At, s.Changes[len(s.Changes)-1].At
		for _, f := range c.faults {
			if !f.from.After(to) && !f.to.Before(from) && !strings.HasSuffix(f.target, NotifierSuffix) {
				add(f.from, "fault: %s", f)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	if s.Ending != nil {
		add(c.final.at, "event_log: %s retries=%d attempts=%d last_error=%.200s", s.Ending.Status, s.Ending.Retries, s.Ending.Attempts, s.Ending.LastError)
	}
	if n := len(lines); n > maxHistory {
		lines = slices.Concat(lines[:maxHistory/2], []line{{lines[0].at, fmt.Sprintf("… %d lines left out …", n-maxHistory)}}, lines[n-maxHistory/2:])
	}
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.at.UTC().Format(clockFormat) + " " + l.text
	}
	return texts
}

// echo is how long a fault may be felt after its end: a connection that broke
// while it was idle fails when it is used for the next time.
const echo = 2 * time.Second

// explained looks for a fault of a process, of its connections, of Postgres or of
// the machine that overlaps a span, and counts it. A filter of nil takes all.
func (c *checker) explained(process string, from, to time.Time, filter func(fault) bool) bool {
	for _, f := range c.faults {
		if filter != nil && !filter(f) {
			continue
		}
		if !f.from.After(to.Add(record.Slack)) && !f.to.Before(from.Add(-record.Slack)) && f.concerns(process) {
			c.allow(f.what)
			return true
		}
	}
	return false
}

func (c *checker) allow(what string) { c.result.figures.allowances[what]++ }
