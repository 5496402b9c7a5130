package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// fate is what became of a mutant.
type fate string

// Only killed is good, and what a sample had no time for is neither.
const (
	killed        fate = "killed"
	leftOut       fate = "left out"
	survived      fate = "SURVIVED"
	outdated      fate = "DOES NOT APPLY"
	uncompilable  fate = "DOES NOT COMPILE"
	panicked      fate = "PANICKED"
	outOfTime     fate = "RAN OUT OF TIME"
	couldNotJudge fate = "NOT JUDGED"
)

// verdict is the fate of one mutant, by whom and why.
type verdict struct {
	mutant *mutant
	fate   fate
	by     string // the test that noticed
	why    string // what there is to say when it was not killed
	took   time.Duration
}

// results are the tests by name, subtests included, as -test.v prints them.
var results = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)

// judged reads the output of a judge's tests.
func judged(output string, j judge) (f fate, by, why string) {
	switch {
	case strings.Contains(output, "panic: test timed out after"):
		return outOfTime, "", "a test must fail soon, not by a deadline:\n" + tail(output)
	case strings.Contains(output, "\npanic: ") || strings.HasPrefix(output, "panic: "), strings.Contains(output, "\nfatal error: "):
		return panicked, "", "a test must fail by its own judgement:\n" + tail(output)
	}
	for _, match := range results.FindAllStringSubmatch(output, -1) {
		top, _, _ := strings.Cut(match[2], "/")
		if match[1] == "FAIL" && slices.Contains(j.tests, top) && len(match[2]) > len(by) {
			by = match[2] // the subtest says more than its test
		}
	}
	if by != "" {
		return killed, by, ""
	}
	return survived, "", "no test noticed"
}

// allPassed reports whether every test of a judge ran and passed without a mutant.
func allPassed(output string, j judge) error {
	passed := map[string]bool{}
	for _, match := range results.FindAllStringSubmatch(output, -1) {
		if match[1] == "PASS" {
			passed[match[2]] = true
		}
	}
	for _, test := range j.tests {
		if !passed[test] {
			return fmt.Errorf("without a mutant %s of %s does not pass:\n%s", test, j.pkg, tail(output))
		}
	}
	return nil
}

// tail is the end of a long output.
func tail(output string) string {
	const most = 3000
	return output[max(0, len(output)-most):]
}
