package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"eventsv2/test/command"
)

func TestWrongCommandLineIsRefused(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"-parallel is 0":              {"-parallel", "0"},
		`"more" is no option`:         {"more"},
		"not defined: -nonsense":      {"-nonsense"},
		`there is no scenario "none"`: {"-only", "fair-relay,none"},
		"-sample is -1s":              {"-sample", "-1s"},
	} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), args, &stdout, &stderr); status != command.ExitUsage {
			t.Errorf("%q ended with %d, want %d", args, status, command.ExitUsage)
		}
		if !strings.Contains(stderr.String(), want) || stdout.Len() > 0 {
			t.Errorf("%q said %q and %q, want %q", args, stdout.String(), stderr.String(), want)
		}
	}
}

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func TestScenariosHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range scenarios() {
		if seen[s.name] || !kebab.MatchString(s.name) || len(s.name) > 34 {
			t.Errorf("the name %q is taken, too long or not in kebab-case", s.name)
		}
		if s.acknowledgement == "" || s.lasts == 0 || s.play == nil {
			t.Errorf("%s lacks a promise, a time or a play", s.name)
		}
		seen[s.name] = true
	}
}

func TestSeedDrawsSampleWithinItsTime(t *testing.T) {
	t.Parallel()
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	const sample, parallel = 40 * time.Second, 3
	samples := map[string]bool{}
	for seed := range uint64(50) {
		drawn := draw(all, options{sample: sample, parallel: parallel, seed: seed})
		var takes time.Duration
		var names strings.Builder
		for _, s := range drawn {
			takes += s.lasts
			names.WriteString(s.name + " ")
		}
		if len(drawn) == 0 || len(drawn) > 1 && takes > sample*parallel {
			t.Errorf("seed %d draws %d scenarios, which take %s", seed, len(drawn), takes)
		}
		samples[names.String()] = true
	}
	if len(samples) < 40 {
		t.Errorf("50 seeds draw %d different samples", len(samples))
	}
}

// TestPageListsTheScenarios holds the documentation to the scenarios.
func TestPageListsTheScenarios(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	list(&want, scenarios())
	if !strings.Contains(string(page), "```\n"+want.String()+"```\n") {
		t.Errorf("docs/reliability.md does not have the list of `go run ./faults -list`:\n%s", want.String())
	}
}

// TestPageNamesThePreviousVersion holds the page about upgrading to what two-versions reads of it.
func TestPageNamesThePreviousVersion(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../" + earlierPage)
	if err != nil {
		t.Fatal(err)
	}
	if !earlierCommit.Match(page) {
		t.Errorf("%s has no sentence such as %q", earlierPage, earlierCommit)
	}
}
