package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// minDecided is the shortest load whose growth is decided: before, caches and
// connection pools are still filling.
const minDecided = 10 * time.Minute

// result is what a run came to.
type result struct {
	opts    options
	loaded  time.Duration
	where   string // it took place
	faults  map[string]int
	total   int // of the faults
	account account
	stuck   int
	failed  int // rows of event_log
	missed  int // queries of the database that failed
	figures []figure
}

// decided reports whether the run was long enough for a verdict on growth.
func (r *result) decided() bool { return r.loaded >= minDecided }

// growing lists what goes on growing.
func (r *result) growing() []string {
	if !r.decided() {
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

// Good reports whether nothing is wrong.
func (r *result) Good() bool {
	return r.account.losses == 0 && r.stuck == 0 && r.failed == 0 && len(r.growing()) == 0
}

// Line is the verdict. What has failed for good is shown only when there is some.
func (r *result) Line() string {
	growth := "none"
	switch names := r.growing(); {
	case !r.decided():
		growth = "undecided"
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
