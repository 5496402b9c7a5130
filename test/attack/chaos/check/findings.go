package check

import (
	"time"

	"eventsv2/test/attack/record"
)

// violation is one broken guarantee with its evidence.
type violation struct {
	class    class
	what     string
	evidence []string
}

// figures count what was seen.
type figures struct {
	events, completed, failed      int
	cancelled, operated            int // ended, and changed otherwise, by the operator
	claims, takeovers, renewals    int
	givenBack, runs, completedInTx int
	ordered, unique, limited       int           // events with such a key, and under a concurrency limit
	rated, granted, putOff         int           // events under a rate limit, runs that it counted, claims that it put off
	chained                        int           // typed events, and those of their handlers
	untouched                      int           // rows by hand that nobody can run
	takenBack                      int           // expired locks that were removed with the place in a group
	heldBack                       int           // events that a rule held back before their first claim
	longest                        time.Duration // from emit to end
	allowances                     map[string]int
	waits                          []wait // from due to the first claim, the longest first
}

// Findings are what was found.
type Findings struct {
	figures    figures
	violations []violation
	slowest    []string // the histories of the events that waited longest
}

func (j *Findings) count(c class) int {
	n := 0
	for _, v := range j.violations {
		if v.class == c {
			n++
		}
	}
	return n
}

// wait is how long an event was due before it was claimed for the first time.
type wait struct {
	trace  *record.Trace
	lasted time.Duration
}
