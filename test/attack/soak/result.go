package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// minJudged is the shortest load whose growth is judged: before, caches and
// connection pools are still filling.
const minJudged = 10 * time.Minute

// result is what a run came to.
type result struct {
	opts     options
	loaded   time.Duration
	postgres string // version
	faults   map[string]int
	total    int // of the faults
	account  account
	stuck    int
	failed   int // rows of event_log
	missed   int // looks at the database that failed
	figures  []figure
}

// judged reports whether the run was long enough for a verdict on growth.
func (r *result) judged() bool { return r.loaded >= minJudged }

// growing lists what keeps growing.
func (r *result) growing() []string {
	if !r.judged() {
		return nil
	}
	var names []string
	for _, f := range r.figures {
		if f.trend.grows {
			names = append(names, f.measure.String())
		}
	}
	return names
}

// good reports whether nothing is wrong.
func (r *result) good() bool {
	return r.account.losses == 0 && r.stuck == 0 && r.failed == 0 && len(r.growing()) == 0
}

// line is the verdict. What has failed for good is shown only when there is some.
func (r *result) line() string {
	growth := "none"
	switch names := r.growing(); {
	case !r.judged():
		growth = "unjudged"
	case len(names) > 0:
		growth = strings.Join(names, ",")
	}
	var failed string
	if r.failed > 0 {
		failed = fmt.Sprintf(" failed=%d", r.failed)
	}
	return fmt.Sprintf("soak: hours=%s events=%d faults=%d lost=%d stuck=%d%s growth=%s",
		hours(r.loaded), r.account.accepted, r.total, r.account.losses, r.stuck, failed, growth)
}

// hours writes a duration in hours with at most three decimals.
func hours(d time.Duration) string {
	text := strconv.FormatFloat(d.Hours(), 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
