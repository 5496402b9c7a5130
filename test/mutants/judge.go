package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// fate is the verdict on a mutant.
type fate string

// Only killed is good, and what a sample had no time for is neither.
const (
	killed        fate = "killed"
	leftOut       fate = "left out"
	survived      fate = "SURVIVED"
	panicked      fate = "PANICKED"
	outOfTime     fate = "RAN OUT OF TIME"
	couldNotJudge fate = "NOT JUDGED"
)

// verdict is the fate of one mutant, by whom and why.
type verdict struct {
	mutant    *mutant
	fate      fate
	pkg, test string // who noticed
	why       string // what there is to say when it was not killed
	took      time.Duration
}

// judge shows a mutant to the test that noticed it last, and then to all tests that may, until one notices.
func (b *builder) judge(ctx context.Context, m *mutant, last noticed) (v verdict) {
	began := time.Now()
	defer func() { v.mutant, v.took = m, time.Since(began) }()
	if last.test != "" {
		if v = b.judgeBy(ctx, m, b.module+"/"+last.pkg, last.test); v.fate == killed || v.fate == leftOut {
			return v
		}
	}
	why := ""
	for _, pkg := range b.judges(m) {
		if v = b.judgeBy(ctx, m, pkg, ""); v.fate != survived {
			return v
		}
		why = cmp.Or(why, v.why)
	}
	v.why = cmp.Or(why, "no test noticed")
	return v
}

// judgeBy shows a mutant to one test of a package, or to all for an empty name. A test that fails has noticed it if it fails
// again with the mutant, and passes without: one that fails now and then has noticed nothing.
func (b *builder) judgeBy(ctx context.Context, m *mutant, pkg, test string) (v verdict) {
	v.pkg = strings.TrimPrefix(pkg, b.module+"/")
	output, err := b.run(ctx, pkg, test, m.name)
	if err == nil {
		if v.fate, v.test, v.why = judged(output); v.fate != killed {
			return v
		}
		test, _, _ = strings.Cut(v.test, "/")
		if output, err = b.run(ctx, pkg, test, m.name); err == nil && passed(output, test) {
			v.fate, v.why = survived, v.test+" failed once, and then passed with the mutant"
			return v
		}
		err = errors.Join(err, b.passesUnchanged(ctx, pkg, test))
	}
	switch {
	case errors.Is(err, errTooLate):
		v.fate = leftOut
	case err != nil:
		v.fate, v.why = couldNotJudge, err.Error()
	}
	return v
}

// results are the tests by name, subtests included, as -test.v prints them.
var results = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)

// judged reads the output of tests.
func judged(output string) (f fate, test, why string) {
	switch {
	case strings.Contains(output, "panic: test timed out after"):
		return outOfTime, "", "a test must fail soon, not by a deadline:\n" + tail(output)
	case strings.Contains(output, "\npanic: ") || strings.HasPrefix(output, "panic: "), strings.Contains(output, "\nfatal error: "):
		return panicked, "", "a test must fail by its own judgement:\n" + tail(output)
	}
	for _, match := range results.FindAllStringSubmatch(output, -1) {
		if match[1] == "FAIL" && (test == "" || strings.HasPrefix(match[2], test+"/")) {
			test = match[2] // the subtest says more than its test
		}
	}
	if test != "" {
		return killed, test, ""
	}
	return survived, "", ""
}

// passed reports whether a test ran and passed.
func passed(output, test string) bool {
	return slices.ContainsFunc(results.FindAllStringSubmatch(output, -1), func(match []string) bool { return match[1] == "PASS" && match[2] == test })
}

// tail is the end of a long output.
func tail(output string) string {
	const most = 3000
	return output[max(0, len(output)-most):]
}

// noticed is the test that noticed a mutant last. It is tried first, so that a run takes minutes and not hours; where it
// is gone, all others are.
type noticed struct{ pkg, test string }

func noticedFile(root string) string { return filepath.Join(root, "test", "mutants", "noticed.txt") }

// readNoticed returns what the runs before have written, by the names of mutants.
func readNoticed(root string) (map[string]noticed, error) {
	text, err := os.ReadFile(noticedFile(root))
	if err != nil {
		return nil, fmt.Errorf("read who noticed last: %w", err)
	}
	by := map[string]noticed{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 {
			by[words[0]] = noticed{words[1], words[2]}
		}
	}
	return by, nil
}

// writeNoticed writes what a run has found, in the order of the mutants.
func writeNoticed(root string, all []mutant, by map[string]noticed) error {
	var text strings.Builder
	for i := range all {
		if n, ok := by[all[i].name]; ok {
			fmt.Fprintln(&text, all[i].name, n.pkg, n.test)
		}
	}
	if err := os.WriteFile(noticedFile(root), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write who noticed: %w", err)
	}
	return nil
}
